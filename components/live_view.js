// The Loss Lab: matrix, one anchor's bars, and panels, all redrawn in the browser while a knob is
// dragged. The server hears of a value when it is let go.

const BLUE = [59, 125, 216], ORANGE = [232, 131, 58], GREY = [130, 140, 150];
const VIEWS = { weight: "Weight on each pair", score: "Similarity", grad: "Gradient", mask: "Who is what" };
const PANELS = { none: "Matrix and anchor", scores: "Scores and margin", anchors: "Loss per anchor", curves: "Over the knob" };

export default function (component) {
  const { parentElement, setStateValue } = component, data = unpack(component.data);
  const lab = parentElement._lab || (parentElement._lab = build(parentElement));
  lab.send = setStateValue;
  if (lab.key !== data.meta.key) load(lab, data);
  else applyKernel(lab, data.meta);
  readFixed(lab, data);
  schedule(lab);
  return () => { cancelAnimationFrame(lab.frame); parentElement._lab = null; };
}

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k.startsWith("on")) node[k] = v;
    else node.setAttribute(k, v);
  }
  node.append(...children);
  return node;
}

function build(parent) {
  const lab = { view: "weight", panel: "none", anchor: 0, hover: null, timings: [], overlay: false };
  const root = parent.querySelector(".root");
  lab.slider = el("input", { type: "range", min: 0, max: 1000, step: 1, "aria-label": "knob" });
  lab.readout = el("output", {});
  lab.knobName = el("span", {});
  lab.loss = el("dd", { class: "loss" });
  lab.effective = el("dd", { class: "effective" });
  lab.ownTitle = el("dt", {}, "This anchor");
  lab.own = el("dd", { class: "own" });
  lab.viewButtons = buttons(VIEWS, lab, "view");
  lab.panelButtons = buttons(PANELS, lab, "panel");
  lab.matrix = el("canvas", { class: "matrix", tabindex: 0, role: "img" });
  lab.bars = el("canvas", { class: "bars", role: "img" });
  lab.extra = el("canvas", { role: "img" });
  lab.panelBox = el("div", { class: "panel", hidden: "" }, lab.extra);
  lab.hint = el("p", { class: "hint", "aria-live": "polite" });
  lab.barTitle = el("h4", {});
  lab.legend = el("div", { class: "legend" });
  lab.save = el("button", { type: "button", onclick: () => savePng(lab) }, "PNG");
  lab.csv = el("button", { type: "button", onclick: () => saveCsv(lab) }, "CSV");
  lab.body = el("div", { class: "body" },
    el("div", {}, lab.matrix, lab.legend, lab.hint), el("div", {}, lab.barTitle, lab.bars));
  lab.root = el("div", { class: "lab" },
    el("div", { class: "bar" },
      el("label", { class: "knob" }, lab.knobName, lab.slider, lab.readout)),
    el("dl", { class: "figures" },
      el("div", {}, el("dt", {}, "Loss"), lab.loss),
      el("div", {}, el("dt", {}, "Effective negatives (mean)"), lab.effective),
      el("div", {}, lab.ownTitle, lab.own)),
    el("div", { class: "bar" }, ...lab.viewButtons, el("span", { style: "flex:1" }), lab.save, lab.csv),
    lab.body,
    el("div", { class: "bar", style: "margin-top:12px" }, ...lab.panelButtons),
    lab.panelBox);
  lab.empty = el("div", { class: "empty", hidden: "" });
  root.append(lab.empty, lab.root);
  lab.slider.oninput = (e) => { lab.pending ||= e.timeStamp; setKnob(lab, fromSlider(lab)); schedule(lab); };
  lab.slider.onchange = () => report(lab);
  lab.matrix.onmousemove = (e) => { lab.hover = cellAt(lab, e); schedule(lab); };
  lab.matrix.onmouseleave = () => { lab.hover = null; schedule(lab); };
  lab.matrix.onclick = (e) => { const c = cellAt(lab, e); if (c) choose(lab, c[0]); };
  lab.matrix.onkeydown = (e) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[e.key];
    if (step) { e.preventDefault(); choose(lab, Math.min(lab.n - 1, Math.max(0, lab.anchor + step))); }
  };
  lab.bars.onmousemove = (e) => {
    const k = Math.floor((e.offsetY / lab.bars.clientHeight) * lab.barRows.length);
    lab.hover = lab.barRows[k] === undefined ? null : [lab.anchor, lab.barRows[k]];
    schedule(lab);
  };
  lab.bars.onmouseleave = lab.matrix.onmouseleave;
  lab.extra.onpointerdown = (e) => dragMargin(lab, e);
  lab.resize = new ResizeObserver(() => schedule(lab));
  lab.resize.observe(lab.root);
  return lab;
}

function buttons(names, lab, field) {
  return Object.entries(names).map(([key, text]) => {
    const b = el("button", { type: "button", "data-key": key, "aria-pressed": String(lab[field] === key) }, text);
    b.onclick = () => {
      lab[field] = key;
      for (const other of lab[field + "Buttons"]) other.setAttribute("aria-pressed", String(other === b));
      schedule(lab);
    };
    return b;
  });
}

function load(lab, data) {
  const meta = data.meta;
  Object.assign(lab, { key: meta.key, meta, n: meta.n, w: meta.w, anchor: Math.min(meta.anchor || 0, Math.max(0, meta.n - 1)) });
  lab.S = new Float32Array(data.scores.slice().buffer);
  lab.M = data.mask.slice();
  lab.out = null;
  lab.sprite = null;
  if (data.sprite && data.sprite.length) {
    createImageBitmap(new Blob([data.sprite], { type: "image/png" })).then((b) => { lab.sprite = b; schedule(lab); });
  }
  lab.image = new ImageData(Math.max(1, lab.w), Math.max(1, lab.n));
  lab.buffer = new OffscreenCanvas(Math.max(1, lab.w), Math.max(1, lab.n));
  let low = Infinity, high = -Infinity;
  for (let k = 0; k < lab.S.length; k++) {
    if (lab.M[k] === 0 || lab.M[k] === 3) continue;
    if (lab.S[k] < low) low = lab.S[k];
    if (lab.S[k] > high) high = lab.S[k];
  }
  lab.range = low <= high ? [low, high] : [0, 1];
  applyKernel(lab, meta);
}

function applyKernel(lab, meta) {
  lab.meta = meta;
  lab.kernel = meta.kernel ? { ...meta.kernel } : null;
  const knob = meta.knob;
  lab.empty.hidden = !meta.reason;
  lab.empty.textContent = meta.reason || "";
  lab.slider.disabled = !knob;
  lab.knobName.textContent = knob ? knob.label : "no knob to drag";
  lab.slider.setAttribute("aria-label", knob ? knob.label : "no knob");
  if (knob) {
    lab.slider.value = toSlider(knob, knob.value);
    setKnob(lab, knob.value);
  }
}

// What the library computed for a loss that has no kernel here.
function readFixed(lab, data) {
  lab.fixed = null;
  if (lab.kernel || !data.pair || !data.pair.length) return;
  const floats = (bytes) => new Float32Array(bytes.slice().buffer);
  const out = make(lab.n, lab.w);
  out.pair = floats(data.pair);
  out.grad = floats(data.grad);
  out.loss = floats(data.loss);
  out.value = data.meta.loss;
  out.valid = 1;
  for (let i = 0; i < lab.n; i++) {
    out.weight[i] = 1;
    let sum = 0, entropy = 0;
    for (let j = 0; j < lab.w; j++) if (lab.M[i * lab.w + j] === 2) { out.negatives[i]++; sum += out.pair[i * lab.w + j]; }
    for (let j = 0; j < lab.w; j++) {
      const p = lab.M[i * lab.w + j] === 2 ? out.pair[i * lab.w + j] / (sum || 1) : 0;
      if (p > 0) entropy -= p * Math.log(p);
    }
    out.effective[i] = sum > 0 ? Math.exp(entropy) : 0;
  }
  lab.fixed = out;
}

function toSlider(knob, v) {
  const t = knob.log ? Math.log(v / knob.low) / Math.log(knob.high / knob.low) : (v - knob.low) / (knob.high - knob.low);
  return Math.round(1000 * t);
}

function fromSlider(lab) {
  const k = lab.meta.knob, t = lab.slider.value / 1000;
  const v = k.log ? k.low * Math.pow(k.high / k.low, t) : k.low + t * (k.high - k.low);
  return Number(v.toPrecision(4));
}

function setKnob(lab, v) {
  lab.value = v;
  if (lab.kernel && lab.kernel.knob) lab.kernel[lab.kernel.knob] = v;
  lab.readout.textContent = v < 0.1 ? v.toFixed(4) : v.toFixed(3);
  lab.slider.setAttribute("aria-valuetext", lab.readout.textContent);
}

function report(lab) { lab.send("chosen", { value: lab.value ?? null, anchor: lab.anchor }); }

function choose(lab, row) {
  if (row === lab.anchor) return;
  lab.anchor = row;
  report(lab);
  schedule(lab);
}

function schedule(lab) {
  if (lab.frame) return;
  lab.frame = requestAnimationFrame(() => { lab.frame = 0; draw(lab); });
}

function draw(lab) {
  if (!lab.S || !lab.root.isConnected) return;
  if (lab.kernel) lab.out = evaluate(lab.S, lab.M, lab.n, lab.w, lab.kernel, lab.out);
  else lab.out = lab.fixed;
  theme(lab);
  drawFigures(lab);
  drawMatrix(lab);
  drawBars(lab);
  lab.panelBox.hidden = lab.panel === "none";
  if (lab.panel !== "none") drawPanel(lab);
  if (lab.pending) {
    lab.timings.push(performance.now() - lab.pending);
    lab.pending = 0;
  }
}

function theme(lab) {
  const style = getComputedStyle(lab.root);
  lab.ink = style.color;
  lab.paper = style.getPropertyValue("--st-background-color") || "#fff";
  lab.accent = style.getPropertyValue("--st-primary-color") || "#2f6db5";
}

function isHinge(lab) { return Boolean(lab.kernel) && lab.kernel.family === "hinge"; }

function number(x) { return Math.abs(x) >= 1000 ? x.toFixed(0) : Math.abs(x) >= 100 ? x.toFixed(1) : x.toFixed(3); }

function drawFigures(lab) {
  const o = lab.out, i = lab.anchor;
  if (!o) { lab.loss.textContent = lab.meta.loss == null ? "–" : number(lab.meta.loss); lab.effective.textContent = lab.own.textContent = "–"; return; }
  let sum = 0, all = 0, count = 0;
  for (let r = 0; r < lab.n; r++) if (o.negatives[r] > 0) { sum += o.effective[r]; all += o.negatives[r]; count++; }
  lab.loss.textContent = o.valid ? number(o.value) : "undefined";
  const soft = !isHinge(lab);
  lab.effective.previousSibling.textContent = soft ? "Effective negatives (mean)" : "Negatives inside the margin (mean)";
  lab.effective.textContent = count ? `${(sum / count).toFixed(soft ? 1 : 0)} of ${(all / count).toFixed(0)}` : "none";
  lab.ownTitle.textContent = `Anchor ${lab.meta.names[i] ?? i}`;
  lab.own.textContent = o.weight[i] > 0 ? `${number(o.loss[i])} · ${o.effective[i].toFixed(soft ? 1 : 0)} of ${o.negatives[i]}` : "undefined: it lacks a partner";
}

function colour(lab, k) {
  const m = lab.M[k];
  if (m === 3) return [...GREY, 90];
  if (m === 0) return [0, 0, 0, 0];
  if (lab.view === "mask") return m === 1 ? [...BLUE, 255] : [...ORANGE, 120];
  if (lab.view === "score") {
    const [low, high] = lab.range, t = (lab.S[k] - low) / (high - low || 1);
    return [...BLUE, Math.round(255 * (isHinge(lab) ? 1 - t : t))];
  }
  if (!lab.out) return [...GREY, 60];
  if (lab.view === "weight") {
    const p = lab.out.pair[k];
    return [...(m === 1 ? BLUE : ORANGE), p > 0 ? Math.round(255 * Math.pow(Math.min(1, p), 0.35)) : 0];
  }
  const g = lab.out.grad[k] / (lab.gradTop || 1);
  return [...(g < 0 ? BLUE : ORANGE), Math.round(255 * Math.pow(Math.min(1, Math.abs(g)), 0.4))];
}

function drawMatrix(lab) {
  const c = lab.matrix, size = c.clientWidth, dpr = devicePixelRatio || 1;
  if (c.width !== Math.round(size * dpr)) c.width = c.height = Math.round(size * dpr);
  const g = c.getContext("2d"), px = lab.image.data, count = lab.n * lab.w;
  if (lab.view === "grad" && lab.out) {
    let top = 0;
    for (let k = 0; k < count; k++) top = Math.max(top, Math.abs(lab.out.grad[k]));
    lab.gradTop = top;
  }
  for (let k = 0, p = 0; k < count; k++, p += 4) {
    const q = colour(lab, k);
    px[p] = q[0]; px[p + 1] = q[1]; px[p + 2] = q[2]; px[p + 3] = q[3];
  }
  lab.buffer.getContext("2d").putImageData(lab.image, 0, 0);
  const strip = lab.sprite ? 22 * dpr : 0, side = c.width - strip;
  lab.plot = { strip, side };
  g.clearRect(0, 0, c.width, c.height);
  g.imageSmoothingEnabled = false;
  g.drawImage(lab.buffer, strip, strip, side, side);
  g.strokeStyle = lab.ink;
  g.globalAlpha = 0.25;
  g.strokeRect(strip + 0.5, strip + 0.5, side - 1, side - 1);
  g.globalAlpha = 1;
  if (lab.sprite) axes(lab, g, strip, side);
  const ch = side / lab.n, cw = side / lab.w;
  g.strokeStyle = lab.accent;
  g.lineWidth = Math.max(1.5 * dpr, 1);
  g.strokeRect(strip, strip + lab.anchor * ch, side, Math.max(ch, 2));
  if (lab.hover) {
    g.strokeStyle = lab.ink;
    g.strokeRect(strip + lab.hover[1] * cw, strip + lab.hover[0] * ch, Math.max(cw, 3), Math.max(ch, 3));
  }
  c.setAttribute("aria-label", `${VIEWS[lab.view]}: ${lab.n} anchors by ${lab.w} candidates; arrow keys choose the anchor`);
  describe(lab);
  lab.legend.replaceChildren(...legend(lab));
}

function legend(lab) {
  const item = (rgb, text) => {
    const i = el("i", {});
    i.style.background = `rgb(${rgb})`;
    return el("span", {}, i, text);
  };
  if (lab.view === "score") return [item(BLUE, isHinge(lab) ? "dark: near" : "dark: similar"), item(GREY, "itself")];
  if (lab.view === "grad") return [item(BLUE, "pulled nearer"), item(ORANGE, "pushed away"), item(GREY, "itself")];
  return [item(BLUE, "positive"), item(ORANGE, "negative"), item(GREY, "itself")];
}

function axes(lab, g, strip, side) {
  const fit = Math.max(1, Math.floor(side / strip));
  for (let k = 0; k < Math.min(fit, lab.n); k++) {
    const row = Math.floor(((k + 0.5) * lab.n) / Math.min(fit, lab.n));
    thumb(lab, g, lab.meta.rowThumb[row], 0, strip + (row / lab.n) * side, strip - 2);
  }
  for (let k = 0; k < Math.min(fit, lab.w); k++) {
    const col = Math.floor(((k + 0.5) * lab.w) / Math.min(fit, lab.w));
    thumb(lab, g, lab.meta.columnThumb[col], strip + (col / lab.w) * side, 0, strip - 2);
  }
}

function thumb(lab, g, index, x, y, size) {
  if (!lab.sprite || index === undefined || index < 0) return;
  const { tile, across } = lab.meta;
  g.drawImage(lab.sprite, (index % across) * tile, Math.floor(index / across) * tile, tile, tile, x, y, size, size);
}

function describe(lab) {
  const at = lab.hover;
  if (!at) { lab.hint.textContent = "Point at a cell; click a row (or use the arrow keys) to choose the anchor."; return; }
  const k = at[0] * lab.w + at[1], what = ["not compared", "positive", "negative", "itself"][lab.M[k]];
  const parts = [`${lab.meta.names[at[0]]} → ${lab.meta.columnNames[at[1]]}`, what, `${lab.meta.scoreName} ${lab.S[k].toFixed(4)}`];
  if (lab.out && (lab.M[k] === 1 || lab.M[k] === 2)) {
    parts.push(`weight ${lab.out.pair[k].toPrecision(3)}`, `gradient ${lab.out.grad[k].toPrecision(3)}`);
  }
  lab.hint.textContent = parts.join(" · ");
}

function cellAt(lab, e) {
  if (!lab.plot) return null;
  const dpr = devicePixelRatio || 1, x = e.offsetX * dpr - lab.plot.strip, y = e.offsetY * dpr - lab.plot.strip;
  const col = Math.floor((x / lab.plot.side) * lab.w), row = Math.floor((y / lab.plot.side) * lab.n);
  return col >= 0 && row >= 0 && col < lab.w && row < lab.n ? [row, col] : null;
}

function sizeCanvas(c) {
  const dpr = devicePixelRatio || 1, w = Math.round(c.clientWidth * dpr), h = Math.round(c.clientHeight * dpr);
  if (c.width !== w || c.height !== h) { c.width = w; c.height = h; }
  const g = c.getContext("2d");
  g.setTransform(dpr, 0, 0, dpr, 0, 0);
  g.clearRect(0, 0, c.clientWidth, c.clientHeight);
  return [g, c.clientWidth, c.clientHeight];
}

function drawBars(lab) {
  const [g, width, height] = sizeCanvas(lab.bars), at = lab.anchor * lab.w;
  const hinge = isHinge(lab);
  const far = hinge || (lab.kernel && lab.kernel.sign < 0);
  const rows = [];
  for (let j = 0; j < lab.w; j++) if (lab.M[at + j] === 1 || lab.M[at + j] === 2) rows.push(j);
  rows.sort((a, b) => (far ? lab.S[at + a] - lab.S[at + b] : lab.S[at + b] - lab.S[at + a]));
  const shown = rows.slice(0, Math.max(4, Math.floor(height / 22)));
  lab.barRows = shown;
  lab.barTitle.textContent = `${lab.meta.names[lab.anchor] ?? ""}: its ${shown.length} nearest of ${rows.length} candidates`;
  let top = 1e-12;
  const value = (j) => (hinge || !lab.out ? lab.S[at + j] : lab.out.pair[at + j]);
  for (const j of shown) top = Math.max(top, Math.abs(value(j)));
  const h = Math.min(22, height / Math.max(1, shown.length)), left = lab.sprite ? h + 6 : 4;
  g.font = "11px sans-serif";
  g.textBaseline = "middle";
  shown.forEach((j, k) => {
    const y = k * h, positive = lab.M[at + j] === 1, v = value(j);
    thumb(lab, g, lab.meta.columnThumb[j], 0, y + 1, h - 2);
    g.fillStyle = `rgb(${positive ? BLUE : ORANGE})`;
    g.globalAlpha = hinge && lab.out && lab.out.pair[at + j] === 0 ? 0.3 : 1;
    g.fillRect(left, y + 3, Math.max(1, (Math.abs(v) / top) * (width - left - 96)), h - 6);
    g.globalAlpha = 1;
    g.fillStyle = lab.ink;
    g.fillText(`${positive ? "+ " : ""}${v.toPrecision(3)}  ${lab.meta.columnNames[j]}`, left + Math.max(1, (Math.abs(v) / top) * (width - left - 96)) + 5, y + h / 2);
    if (lab.hover && lab.hover[1] === j) { g.strokeStyle = lab.accent; g.lineWidth = 2; g.strokeRect(0, y, width, h); }
  });
  lab.bars.setAttribute("aria-label", `${hinge ? "distances" : "softmax"} of anchor ${lab.anchor} over its candidates, in rank order`);
}
