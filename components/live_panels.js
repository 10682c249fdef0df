// Panels of the Loss Lab that open on demand, one at a time: margin, gradients, curves over the
// knob, and two settings side by side.

const BINS = 60, STEPS = 80;
const SAME = 1e-6; // differences below this are rounding

/** The forms that a second setting may take on the same scores. */
const FORMS = {
  softmax: {
    same: ["the same loss", {}],
    out: ["all in one denominator (NT-Xent, SupCon out)", { denominator: "all", aggregate: "out" }],
    in: ["mean inside the log (SupCon in)", { denominator: "all", aggregate: "in" }],
    own: ["each positive on its own (InfoNCE)", { denominator: "own_positive", aggregate: "out" }],
  },
  pair: { same: ["the same loss", {}], plain: ["hinge on the distance", { squared: false }], squared: ["hinge on the squared distance", { squared: true }] },
  triplet: { same: ["the same loss", {}], all: ["all triplets", { mining: "all" }], semi_hard: ["semi-hard triplets", { mining: "semi_hard" }], hard: ["the hardest triplet", { mining: "hard" }] },
};

function openPanel(lab, key) {
  lab.panel = key;
  lab.panelBox.hidden = key === "none";
  lab.extra = el("canvas", { role: "img", class: key });
  lab.note = el("p", { class: "hint", "aria-live": "off" });
  lab.two = null;
  if (key === "two" && lab.kernel) lab.panelBox.replaceChildren(second(lab), el("div", { class: "body" }, lab.extra, lab.note));
  else lab.panelBox.replaceChildren(lab.note, lab.extra);
  if (key === "scores") lab.extra.onpointerdown = (e) => dragMargin(lab, e);
  if (key === "grads") {
    lab.extra.onclick = (e) => { const i = anchorAt(lab, e); if (i !== undefined) choose(lab, i, true); };
    lab.extra.onpointermove = (e) => { const i = anchorAt(lab, e); light(lab, i === undefined ? null : [i, null]); };
    lab.extra.onpointerleave = () => light(lab, null);
  }
}

function drawPanel(lab) {
  if (lab.panel === "none") return;
  const [g, width, height] = sizeCanvas(lab.extra);
  g.fillStyle = lab.ink;
  if (lab.panel === "scores") drawScores(lab, g, width, height);
  else if (!lab.kernel && lab.panel !== "grads") lab.note.textContent = "The server computes this loss when the knob is let go; this panel needs one that the browser computes.";
  else if (lab.panel === "two") drawTwo(lab, g, width, height);
  else if (lab.panel === "curves") drawCurves(lab, g, width, height);
  else if (lab.out) drawGradients(lab, g, width, height);
  lab.extra.setAttribute("aria-label", `${PANELS[lab.panel]}. ${lab.note.textContent}`);
}

// --- margin ------------------------------------------------------------------------------------

/** Histograms of positives' and negatives' scores: of all anchors, or of one. */
function histogram(lab, one) {
  const name = one ? `bins${lab.anchor}` : "bins";
  if (lab.cache.binsName === name) return lab.cache.bins;
  const [low, high] = lab.range, scale = BINS / (high - low || 1);
  const bins = { positive: new Float64Array(BINS), negative: new Float64Array(BINS), nP: 0, nN: 0, far: -Infinity };
  for (let k = one ? lab.anchor * lab.w : 0, end = one ? k + lab.w : lab.S.length; k < end; k++) {
    const b = Math.min(BINS - 1, Math.floor((lab.S[k] - low) * scale));
    if (lab.M[k] === 1) { bins.positive[b]++; bins.nP++; bins.far = Math.max(bins.far, lab.S[k]); }
    else if (lab.M[k] === 2) { bins.negative[b]++; bins.nN++; }
  }
  lab.cache.binsName = name;
  return (lab.cache.bins = bins);
}

function drawScores(lab, g, width, height) {
  const triplet = isHinge(lab) && lab.kernel.form === "triplet", bins = histogram(lab, triplet);
  const [low, high] = lab.range, base = height - 18, wide = (width - 20) / BINS;
  const x = (v) => 10 + ((v - low) / (high - low || 1)) * (width - 20);
  for (const [counts, colour] of [[bins.negative, ORANGE], [bins.positive, BLUE]]) {
    const top = Math.max(1, ...counts);
    g.fillStyle = rgb(colour, 0.6);
    counts.forEach((c, b) => g.fillRect(10 + b * wide, base - (c / top) * (base - 10), wide - 1, (c / top) * (base - 10)));
  }
  g.fillStyle = lab.ink;
  g.fillText(low.toFixed(2), 10, height - 5);
  g.fillText(high.toFixed(2), width - 40, height - 5);
  lab.marginAt = null;
  if (isHinge(lab) && bins.nP + bins.nN > 0) {
    lab.marginFrom = triplet ? bins.far : 0;
    lab.marginAt = lab.kernel.squared && !triplet ? Math.sqrt(lab.kernel.margin) : lab.marginFrom + lab.kernel.margin;
    const at = Math.min(width - 8, x(lab.marginAt));
    line(g, [[at, 6], [at, base]], lab.accent, 3);
  }
  lab.note.textContent = marginWords(lab, triplet, bins);
}

function marginWords(lab, triplet, bins) {
  const pairs = `${lab.meta.scoreName}: ${bins.nP} positive pairs (blue) and ${bins.nN} negative pairs (orange)`;
  if (!isHinge(lab) || !lab.out) return `${pairs}, each with a scale of its own.`;
  const sum = (a) => a.reduce((s, v) => s + v, 0), active = sum(lab.out.active);
  if (!triplet) return `${pairs}. Drag the line: ${active} negatives lie inside the margin and are pushed, ${bins.nN - active} the loss no longer moves.`;
  const hard = sum(lab.out.hard), beyond = lab.marginAt > lab.range[1] ? " (beyond the right edge)" : "";
  return `${pairs} of the chosen anchor; the line is its farthest positive plus the margin${beyond}. In the batch ${active} triplets are active: ${hard} hard, ${active - hard} semi-hard.`;
}

function dragMargin(lab, e) {
  if (lab.marginAt === null) return;
  const [low, high] = lab.range, knob = lab.meta.knob, canvas = lab.extra;
  lab.dragging = true;
  const move = (m) => {
    const box = canvas.getBoundingClientRect();
    const d = low + ((m.clientX - box.left - 10) / (box.width - 20)) * (high - low);
    const wanted = lab.kernel.squared && lab.kernel.form === "pair" ? Math.max(0, d) * d : d - lab.marginFrom;
    const v = Number(Math.min(knob.high, Math.max(knob.low, wanted)).toPrecision(4));
    lab.slider.value = toSlider(knob, v);
    drag(lab, v, m.timeStamp);
  };
  canvas.setPointerCapture(e.pointerId);
  canvas.onpointermove = move;
  canvas.onpointerup = canvas.onpointercancel = () => {
    canvas.onpointermove = canvas.onpointerup = canvas.onpointercancel = null;
    report(lab);
  };
  move(e);
}

// --- gradients ---------------------------------------------------------------------------------

/** How the push on the chosen anchor's negatives is shared, hardest first. */
function shares(lab) {
  const at = lab.anchor * lab.w, push = [];
  for (let j = 0; j < lab.w; j++) if (lab.M[at + j] === 2) push.push(Math.abs(lab.out.grad[at + j]));
  push.sort((a, b) => b - a);
  let sum = 0;
  const total = push.reduce((s, v) => s + v, 0);
  return { total, curve: push.map((v) => (sum += v) / (total || 1)) };
}

function drawGradients(lab, g, width, height) {
  const { total, curve } = shares(lab), half = width / 2 - 16, base = height - 18, span = base - 20;
  g.fillText("share of the push by its k hardest negatives", 10, 12);
  if (total > 0) line(g, [[10, base], ...curve.map((v, k) => [10 + ((k + 1) / curve.length) * (half - 10), base - v * span])], rgb(ORANGE));
  g.fillText(`k = 0 to ${curve.length}`, 10, height - 5);
  const share = (k) => `${(100 * (curve[Math.min(k, curve.length) - 1] ?? 0)).toFixed(0)} %`;
  lab.note.textContent = total > 0
    ? `The hardest negative of ${lab.meta.names[lab.anchor]} carries ${share(1)} of the push, the hardest 5 ${share(5)}, the harder half ${share(Math.ceil(curve.length / 2))}. Click a bar to choose its anchor.`
    : `Nothing pushes ${lab.meta.names[lab.anchor]}. Click a bar to choose its anchor.`;
  const order = Array.from({ length: lab.n }, (_, i) => i).filter((i) => lab.out.weight[i] > 0);
  order.sort((a, b) => lab.out.loss[b] - lab.out.loss[a]);
  const top = Math.max(1e-12, ...order.map((i) => lab.out.loss[i])), left = half + 24, wide = (width - left - 10) / Math.max(1, order.length);
  lab.sorted = { order, left, wide };
  g.fillStyle = lab.ink;
  g.fillText(`loss of ${order.length} anchors, largest first (up to ${number(top)})`, left, 12);
  order.forEach((i, k) => {
    const h = Math.max(1, (lab.out.loss[i] / top) * span);
    g.fillStyle = i === lab.anchor || (lab.hover && lab.hover[0] === i) ? lab.accent : rgb(GREY, 0.7);
    g.fillRect(left + k * wide, base - h, Math.max(1, wide - 0.5), h);
  });
}

function anchorAt(lab, e) {
  const { order, left, wide } = lab.sorted || { order: [] };
  return order[Math.floor((e.offsetX - left) / wide)];
}

// --- over the knob -----------------------------------------------------------------------------

/** Loss, effective negatives and weight on the positives of one anchor, all along the knob. */
function alongKnob(lab) {
  const { knob } = lab.meta, name = JSON.stringify([lab.anchor, { ...lab.kernel, [lab.kernel.knob]: 0 }]);
  if (lab.cache.curvesName === name) return lab.cache.curves;
  const one = make(1, lab.w), at = lab.anchor * lab.w;
  const S = lab.S.subarray(at, at + lab.w), M = lab.M.subarray(at, at + lab.w), points = [];
  for (let s = 0; s <= STEPS; s++) {
    const o = evaluate(S, M, 1, lab.w, { ...lab.kernel, [lab.kernel.knob]: fromSlider(knob, (1000 * s) / STEPS) }, one);
    let p = 0;
    for (let j = 0; j < lab.w; j++) if (M[j] === 1) p += o.pair[j];
    points.push([s / STEPS, o.loss[0], o.effective[0], p]);
  }
  lab.cache.curvesName = name;
  return (lab.cache.curves = points);
}

function drawCurves(lab, g, width, height) {
  const knob = lab.meta.knob;
  if (!knob || !lab.kernel.knob) { lab.note.textContent = "This loss has no temperature or margin to go along."; return; }
  const points = alongKnob(lab), soft = !isHinge(lab);
  const curves = [[1, "loss", ORANGE, []], [2, soft ? "effective negatives (exp of the entropy)" : "negatives that push", BLUE, [7, 4]]];
  if (soft) curves.push([3, "weight on the positives", GREEN, [2, 3]]);
  let text = 10;
  for (const [field, name, colour, dash] of curves) {
    const top = Math.max(1e-12, ...points.map((q) => q[field])), label = `${name}, up to ${number(top)}`;
    g.setLineDash(dash);
    line(g, points.map((q) => [10 + q[0] * (width - 20), height - 16 - (q[field] / top) * (height - 46)]), rgb(colour));
    g.setLineDash([]);
    g.fillStyle = rgb(colour);
    g.fillRect(text, 5, 9, 9);
    g.fillStyle = lab.ink;
    g.fillText(label, text + 13, 13);
    text += g.measureText(label).width + 32;
  }
  g.fillText(`${knob.label} ${knob.low}`, 10, height - 3);
  g.fillText(String(knob.high), width - 34, height - 3);
  const x = 10 + (toSlider(knob, lab.value) / 1000) * (width - 20);
  line(g, [[x, 20], [x, height - 14]], lab.accent);
  lab.note.textContent = `Anchor ${lab.meta.names[lab.anchor]} all along ${knob.label}${knob.log ? " (logarithmic)" : ""}; the line is where it stands now.`;
}

// --- two settings ------------------------------------------------------------------------------

function second(lab) {
  const forms = FORMS[lab.kernel.form || "softmax"], knob = lab.kernel.knob ? lab.meta.knob : null;
  const two = (lab.two = { changes: {}, value: lab.value, stale: true });
  const select = el("select", { "aria-label": "form of the second setting", onchange: () => { two.changes = forms[select.value][1]; again(); } },
    ...Object.entries(forms).map(([key, [text]]) => el("option", { value: key }, text)));
  const readout = el("output", {}, knob ? number(two.value) : "");
  const slider = el("input", { type: "range", min: 0, max: 1000, step: 1, "aria-label": "knob of the second setting" });
  const again = () => { two.stale = true; schedule(lab, true); };
  const children = [el("span", {}, "second setting"), select];
  if (knob) {
    slider.value = toSlider(knob, two.value);
    slider.oninput = (e) => { lab.pending ||= e.timeStamp; two.value = fromSlider(knob, slider.value); readout.textContent = number(two.value); again(); };
    children.push(slider, readout);
  }
  return el("div", { class: "bar knob" }, ...children);
}

function drawTwo(lab, g, width, height) {
  const two = lab.two;
  if (!two) { openPanel(lab, "two"); schedule(lab, true); return; }
  if (two.stale) {
    const kernel = { ...lab.kernel, ...two.changes };
    if (kernel.knob) kernel[kernel.knob] = two.value;
    two.out = evaluate(lab.S, lab.M, lab.n, lab.w, kernel, two.out);
    two.stale = false;
  }
  const a = lab.out, b = two.out, count = lab.n * lab.w;
  if (lab.stale || !two.buffer) {
    two.difference ||= new Float32Array(count);
    // SupCon's two forms, for one, weigh every pair alike and still pull differently.
    for (two.of of ["pair", "grad"]) {
      for (let k = 0; k < count; k++) two.difference[k] = a[two.of][k] - b[two.of][k];
      two.top = largest(two.difference);
      if (two.top > SAME) break;
    }
    paintDifference(lab, two);
  }
  g.imageSmoothingEnabled = false;
  g.drawImage(two.buffer, 0, 0, width, height);
  const mean = (o) => { let s = 0, m = 0; for (let i = 0; i < lab.n; i++) if (o.negatives[i]) { s += o.effective[i]; m++; } return m ? few(s / m) : "none"; };
  lab.note.textContent = `Loss here ${number(a.value)}, in the second setting ${number(b.value)}, difference ${number(a.value - b.value)}. ` +
    `${isHinge(lab) ? "Negatives that push" : "Effective negatives"} (mean) ${mean(a)} and ${mean(b)}. ` +
    `Anchor ${lab.meta.names[lab.anchor]}: ${number(a.loss[lab.anchor])} and ${number(b.loss[lab.anchor])}. ` +
    differenceWords(two);
}

function differenceWords({ top, of }) {
  if (!(top > SAME)) return "Both put the same weight and the same gradient on every pair.";
  if (of === "pair") return `Orange: pairs that weigh more here, blue: more in the second setting; the largest difference is ${number(top)}.`;
  return `Both put the same weight on every pair, but not the same gradient. Blue: pairs that are pulled harder here, orange: harder in the second setting; the largest difference is ${number(top)}.`;
}

function paintDifference(lab, two) {
  two.image ||= new ImageData(Math.max(1, lab.w), Math.max(1, lab.n));
  two.buffer ||= new OffscreenCanvas(Math.max(1, lab.w), Math.max(1, lab.n));
  const pixels = new Uint32Array(two.image.data.buffer), bits = new Uint32Array(two.difference.buffer), table = divergingShades(Math.max(two.top, SAME));
  for (let r = 0, p = 0; r < lab.n; r++) for (let c = 0; c < lab.w; c++, p++) pixels[p] = table[bits[lab.rows[r] * lab.w + lab.columns[c]] >>> BITS];
  two.buffer.getContext("2d").putImageData(two.image, 0, 0);
}
