// Panels of the Loss Lab that open on demand: scores with the margin, loss per anchor, and the
// chosen anchor over the whole range of the knob.

function drawPanel(lab) {
  const [g, width, height] = sizeCanvas(lab.extra);
  g.font = "11px sans-serif";
  g.fillStyle = lab.ink;
  if (lab.panel === "scores") drawScores(lab, g, width, height);
  else if (lab.panel === "anchors" && lab.out) drawAnchors(lab, g, width, height);
  else if (lab.kernel) drawCurves(lab, g, width, height);
  else g.fillText("The server computes this loss when the knob is let go.", 10, 20);
}

function drawScores(lab, g, width, height) {
  const bins = 60, [low, high] = lab.range, span = high - low || 1;
  const positive = new Float64Array(bins), negative = new Float64Array(bins);
  let nP = 0, nN = 0, active = 0;
  for (let k = 0; k < lab.S.length; k++) {
    const b = Math.min(bins - 1, Math.floor(((lab.S[k] - low) / span) * bins));
    if (lab.M[k] === 1) { positive[b]++; nP++; }
    else if (lab.M[k] === 2) { negative[b]++; nN++; if (lab.out && lab.out.pair[k] > 0) active++; }
  }
  const x = (v) => 10 + ((v - low) / span) * (width - 20), base = height - 18;
  const bars = (counts, total, rgb) => {
    const top = Math.max(...counts, 1);
    g.fillStyle = `rgb(${rgb} / 0.6)`;
    counts.forEach((c, b) => g.fillRect(10 + (b * (width - 20)) / bins, base - (c / top) * (base - 26), (width - 20) / bins - 1, (c / top) * (base - 26)));
  };
  bars(negative, nN, ORANGE);
  bars(positive, nP, BLUE);
  g.fillStyle = lab.ink;
  g.fillText(`${lab.meta.scoreName}: ${nP} positive pairs (blue), ${nN} negative pairs (orange)`, 10, 12);
  g.fillText(low.toFixed(2), 10, height - 5);
  g.fillText(high.toFixed(2), width - 40, height - 5);
  lab.marginX = null;
  if (lab.kernel && lab.kernel.family === "hinge" && lab.kernel.form === "pair") {
    const at = lab.kernel.squared ? Math.sqrt(lab.kernel.margin) : lab.kernel.margin;
    lab.marginX = x(Math.min(high, at));
    g.strokeStyle = lab.accent;
    g.lineWidth = 2;
    g.beginPath();
    g.moveTo(lab.marginX, 18);
    g.lineTo(lab.marginX, base);
    g.stroke();
    g.fillText(`margin: ${active} of ${nN} negatives are inside it and are pushed; drag the line`, 10, 25);
  }
}

function dragMargin(lab, e) {
  if (lab.panel !== "scores" || lab.marginX === null || lab.marginX === undefined) return;
  const [low, high] = lab.range, k = lab.meta.knob;
  const move = (m) => {
    const box = lab.extra.getBoundingClientRect();
    const d = low + ((m.clientX - box.left - 10) / (box.width - 20)) * (high - low);
    const v = Math.min(k.high, Math.max(k.low, lab.kernel.squared ? d * d : d));
    lab.slider.value = toSlider(k, v);
    lab.pending ||= m.timeStamp;
    setKnob(lab, v);
    schedule(lab);
  };
  lab.extra.setPointerCapture(e.pointerId);
  lab.extra.onpointermove = move;
  lab.extra.onpointerup = () => { lab.extra.onpointermove = lab.extra.onpointerup = null; report(lab); };
  move(e);
}

function drawAnchors(lab, g, width, height) {
  const order = [...Array(lab.n).keys()].filter((i) => lab.out.weight[i] > 0);
  order.sort((a, b) => lab.out.loss[b] - lab.out.loss[a]);
  const top = Math.max(1e-12, ...order.map((i) => lab.out.loss[i])), w = (width - 20) / Math.max(1, order.length);
  g.fillText(`loss of ${order.length} anchors, largest first (${number(top)}); ${lab.n - order.length} are undefined`, 10, 12);
  order.forEach((i, k) => {
    const h = Math.max(1, (lab.out.loss[i] / top) * (height - 30));
    g.fillStyle = i === lab.anchor ? lab.accent : `rgb(${ORANGE} / 0.75)`;
    g.fillRect(10 + k * w, height - 6 - h, Math.max(1, w - 0.5), h);
  });
}

function drawCurves(lab, g, width, height) {
  const k = lab.meta.knob;
  if (!k) { g.fillText("This loss has no temperature or margin.", 10, 20); return; }
  const steps = 80, one = make(1, lab.w), at = lab.anchor * lab.w;
  const S = lab.S.subarray(at, at + lab.w), M = lab.M.subarray(at, at + lab.w);
  const points = [];
  for (let s = 0; s <= steps; s++) {
    const t = s / steps, v = k.log ? k.low * Math.pow(k.high / k.low, t) : k.low + t * (k.high - k.low);
    const o = evaluate(S, M, 1, lab.w, { ...lab.kernel, [lab.kernel.knob]: v }, one);
    let p = 0;
    for (let j = 0; j < lab.w; j++) if (M[j] === 1) p += o.pair[j];
    points.push([t, o.loss[0], o.effective[0], p, v]);
  }
  const soft = lab.kernel.family === "softmax";
  const curves = [[1, "loss", ORANGE], [2, soft ? "effective negatives" : "active negatives", BLUE]];
  if (soft) curves.push([3, "weight on the positives", [47, 163, 124]]);
  let text = 10;
  for (const [field, name, rgb] of curves) {
    const top = Math.max(1e-12, ...points.map((q) => q[field]));
    g.strokeStyle = g.fillStyle = `rgb(${rgb})`;
    g.lineWidth = 2;
    g.beginPath();
    points.forEach((q, s) => {
      const x = 10 + q[0] * (width - 20), y = height - 16 - (q[field] / top) * (height - 46);
      if (s) g.lineTo(x, y); else g.moveTo(x, y);
    });
    g.stroke();
    const label = `${name} (to ${number(top)})`;
    g.fillText(label, text, 12);
    text += g.measureText(label).width + 16;
  }
  g.fillStyle = lab.ink;
  g.fillText(`${k.label} ${k.low}`, 10, height - 3);
  g.fillText(String(k.high), width - 34, height - 3);
  const x = 10 + (toSlider(k, lab.value) / 1000) * (width - 20);
  g.strokeStyle = lab.accent;
  g.beginPath();
  g.moveTo(x, 20);
  g.lineTo(x, height - 14);
  g.stroke();
}

// --- downloads ---------------------------------------------------------------------------------

function offer(blob, name) {
  const a = el("a", { href: URL.createObjectURL(blob), download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

function savePng(lab) {
  const c = document.createElement("canvas");
  c.width = lab.matrix.width + lab.bars.width + 20;
  c.height = Math.max(lab.matrix.height, lab.bars.height);
  const g = c.getContext("2d");
  g.fillStyle = lab.paper;
  g.fillRect(0, 0, c.width, c.height);
  g.drawImage(lab.matrix, 0, 0);
  g.drawImage(lab.bars, lab.matrix.width + 20, 0);
  c.toBlob((b) => offer(b, "loss-lab.png"));
}

function saveCsv(lab) {
  const safe = (t) => `"${(/^[=+\-@\t\r]/.test(t) ? "'" : "") + String(t).replaceAll('"', '""')}"`;
  const lines = ["anchor,candidate,relation,score,weight,gradient"];
  for (let i = 0; i < lab.n; i++) for (let j = 0; j < lab.w; j++) {
    const k = i * lab.w + j, what = ["", "positive", "negative", "self"][lab.M[k]];
    if (!what) continue;
    lines.push([safe(lab.meta.names[i]), safe(lab.meta.columnNames[j]), what, lab.S[k], lab.out ? lab.out.pair[k] : "", lab.out ? lab.out.grad[k] : ""].join());
  }
  offer(new Blob([lines.join("\n")], { type: "text/csv" }), "loss-lab.csv");
}
