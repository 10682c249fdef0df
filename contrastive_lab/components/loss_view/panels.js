// Panels of the Loss Lab that open on demand, one at a time. Here: the margin and the gradients.

import { BLUE, GRAY, ORANGE, el, line, number, rgb, say, sizeCanvas } from "../shared/dom.js";
import { drawTwo, openTwo } from "./second.js";
import { PANELS, choose, drag, light, report } from "./main.js";
import { drawFormula } from "./formula.js";
import { drawCurves } from "./curves.js";
import { isHinge } from "./draw.js";
import { knobText, toSlider } from "../shared/knob.js";

const BINS = 60;
const PANEL_KEYS = {
  grads: " Left and right walk through the anchors.",
  scores: " Left and right move the margin.",
  two: " Arrow keys choose anchor and candidate.",
};

export function openPanel(lab, key) {
  lab.panel = key;
  lab.panelBox.hidden = key === "none";
  lab.extra = el("canvas", { role: "img", class: key });
  lab.note = el("p", { class: "hint", "aria-live": "off" });
  if (key === "two") openTwo(lab);
  else if (key === "formula")
    lab.panelBox.replaceChildren(lab.note, (lab.worked = el("div", { class: "worked" })), lab.extra);
  else lab.panelBox.replaceChildren(lab.note, lab.extra);
  if (key === "scores") listenMargin(lab);
  if (key === "grads") listenGradients(lab);
}

function listenGradients(lab) {
  const canvas = lab.extra;
  canvas.tabIndex = 0;
  canvas.onclick = (e) => {
    const i = anchorAt(lab, e);
    if (i !== undefined) choose(lab, i, true);
  };
  canvas.onpointermove = canvas.onpointerdown = (e) => {
    const i = anchorAt(lab, e);
    light(lab, i === undefined ? null : [i, null]);
  };
  canvas.onpointerleave = lab.matrix.onpointerleave;
  canvas.onkeydown = (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key],
      order = lab.sorted ? lab.sorted.order : [];
    if (!step || !order.length) return;
    e.preventDefault();
    choose(lab, order[Math.min(order.length - 1, Math.max(0, order.indexOf(lab.anchor) + step))], false);
    lab.movedByKey = true;
  };
  canvas.onkeyup = lab.matrix.onkeyup;
}

export function drawPanel(lab) {
  if (lab.panel === "none") return;
  if (lab.panel === "formula") {
    drawFormula(lab);
    return;
  }
  const [g, width, height] = sizeCanvas(lab.extra);
  g.fillStyle = lab.ink;
  if (lab.panel === "scores") drawScores(lab, g, width, height);
  else if (lab.panel === "two") drawTwo(lab, g, width, height);
  else if (!lab.kernel && lab.panel !== "grads")
    say(
      lab.note,
      "The server computes this loss when the knob is let go; this panel needs one that the browser computes.",
    );
  else if (lab.panel === "curves") drawCurves(lab, g, width, height);
  else if (lab.out) drawGradients(lab, g, width, height);
  lab.extra.setAttribute("aria-label", `${PANELS[lab.panel]}. ${lab.note.textContent}${PANEL_KEYS[lab.panel] || ""}`);
}

// --- margin ------------------------------------------------------------------------------------

/** Histograms of positives' and negatives' scores: of all anchors, or of one. */
function histogram(lab, one) {
  const name = one ? `bins${lab.anchor}` : "bins";
  if (lab.cache.binsName === name) return lab.cache.bins;
  const [low, high] = lab.range,
    scale = BINS / (high - low || 1);
  const bins = { positive: new Float64Array(BINS), negative: new Float64Array(BINS), nP: 0, nN: 0, far: -Infinity };
  for (let k = one ? lab.anchor * lab.w : 0, end = one ? k + lab.w : lab.S.length; k < end; k++) {
    const b = Math.min(BINS - 1, Math.floor((lab.S[k] - low) * scale));
    if (lab.M[k] === 1) {
      bins.positive[b]++;
      bins.nP++;
      bins.far = Math.max(bins.far, lab.S[k]);
    } else if (lab.M[k] === 2) {
      bins.negative[b]++;
      bins.nN++;
    }
  }
  lab.cache.binsName = name;
  return (lab.cache.bins = bins);
}

function drawScores(lab, g, width, height) {
  const triplet = isHinge(lab) && lab.kernel.form === "triplet",
    bins = histogram(lab, triplet);
  const [low, high] = lab.range,
    base = height - 18,
    wide = (width - 20) / BINS;
  const x = (v) => 10 + ((v - low) / (high - low || 1)) * (width - 20);
  for (const [counts, color] of [
    [bins.negative, ORANGE],
    [bins.positive, BLUE],
  ]) {
    const top = Math.max(1, ...counts);
    g.fillStyle = rgb(color, 0.6);
    counts.forEach((c, b) =>
      g.fillRect(10 + b * wide, base - (c / top) * (base - 10), wide - 1, (c / top) * (base - 10)),
    );
  }
  g.fillStyle = lab.ink;
  for (const t of [0, 0.25, 0.5, 0.75, 1])
    tick(g, (low + t * (high - low)).toFixed(2), 10 + t * (width - 20), height - 5, width);
  lab.marginAt = null;
  if (isHinge(lab) && bins.nP + bins.nN > 0) {
    lab.marginFrom = triplet ? bins.far : 0;
    lab.marginAt = lab.kernel.squared && !triplet ? Math.sqrt(lab.kernel.margin) : lab.marginFrom + lab.kernel.margin;
    const at = Math.min(width - 8, x(lab.marginAt));
    line(
      g,
      [
        [at, 6],
        [at, base],
      ],
      lab.accent,
      3,
    );
    tick(
      g,
      triplet ? "farthest positive + ε" : "ε",
      at + (at > width / 2 ? -8 : 8),
      14,
      width,
      at > width / 2 ? "right" : "left",
    );
  }
  nameMargin(lab);
  say(lab.note, marginWords(lab, triplet, bins));
}

function marginWords(lab, triplet, bins) {
  const pairs = `${lab.meta.scoreName}: ${bins.nP} positive pairs (blue) and ${bins.nN} negative pairs (orange)`;
  if (!isHinge(lab) || !lab.out) return `${pairs}, each with a scale of its own.`;
  const sum = (a) => a.reduce((s, v) => s + v, 0),
    active = sum(lab.out.active);
  if (!triplet)
    return `${pairs}. Drag the line: ${active} negatives lie inside the margin and are pushed, ${bins.nN - active} beyond it the loss no longer moves: they are blank in the matrix and pale among the bars. Positives are pulled at every distance.`;
  const hard = sum(lab.out.hard),
    beyond = lab.marginAt > lab.range[1] ? " (beyond the right edge)" : "";
  return `${pairs} of the chosen anchor; the line is its farthest positive plus the margin${beyond}. Negatives left of it are still pushed. In the batch ${active} triplets are active: ${hard} hard (the negative is nearer than the positive), ${active - hard} semi-hard (farther, but by less than the margin).`;
}

/** The line answers to mouse and touch, and to arrow keys: a held key is one drag. */
function listenMargin(lab) {
  const canvas = lab.extra;
  canvas.onpointerdown = (e) => dragMargin(lab, e);
  canvas.onkeydown = (e) => {
    const knob = lab.meta.knob,
      step = {
        ArrowRight: 1,
        ArrowUp: 1,
        ArrowLeft: -1,
        ArrowDown: -1,
        PageUp: 10,
        PageDown: -10,
        Home: -1000,
        End: 1000,
      }[e.key];
    if (!step || lab.marginAt === null) return;
    e.preventDefault();
    const v = Number(
      Math.min(knob.high, Math.max(knob.low, lab.value + (step * (knob.high - knob.low)) / 200)).toPrecision(4),
    );
    lab.slider.value = toSlider(knob, v);
    lab.marginByKey = true;
    drag(lab, v, e.timeStamp);
  };
  canvas.onkeyup = canvas.onblur = () => {
    if (lab.marginByKey) {
      lab.marginByKey = false;
      report(lab);
    }
  };
}

/** The histogram is a slider for those who can't see it, where there is a line to move. */
function nameMargin(lab) {
  const canvas = lab.extra,
    knob = lab.meta.knob,
    movable = lab.marginAt !== null;
  canvas.tabIndex = movable ? 0 : -1;
  canvas.classList.toggle("fixed", !movable);
  const told = movable
    ? {
        role: "slider",
        "aria-valuemin": knob.low,
        "aria-valuemax": knob.high,
        "aria-valuenow": lab.value,
        "aria-valuetext": knobText(lab.value),
      }
    : { role: "img" };
  for (const [name, value] of Object.entries(told)) canvas.setAttribute(name, value);
}

function dragMargin(lab, e) {
  if (lab.marginAt === null) return;
  const [low, high] = lab.range,
    knob = lab.meta.knob,
    canvas = lab.extra;
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

/** Text centerd at x, kept inside the canvas. */
export function tick(g, text, x, y, width, align = "center") {
  const wide = g.measureText(text).width,
    left = align === "left" ? x : align === "right" ? x - wide : x - wide / 2;
  g.fillText(text, Math.min(width - wide - 2, Math.max(2, left)), y);
}

// --- gradients ---------------------------------------------------------------------------------

/** How the push on the chosen anchor's negatives is shared, hardest first. */
function shares(lab) {
  const at = lab.anchor * lab.w;
  let push = [];
  for (let j = 0; j < lab.w; j++) if (lab.M[at + j] === 2) push.push([Math.abs(lab.out.grad[at + j]), j]);
  const most = Math.max(...push.map(([v]) => v), 0),
    hardest = (push.find(([v]) => v === most) || [])[1];
  push = push.map(([v]) => v).sort((a, b) => b - a);
  let sum = 0;
  const total = push.reduce((s, v) => s + v, 0);
  return { total, hardest, curve: push.map((v) => (sum += v) / (total || 1)) };
}

const GRADIENTS =
  "The matrix shows pull and push for every pair where “Gradient” is chosen above it; click a bar to choose its anchor.";

function drawGradients(lab, g, width, height) {
  const { total, hardest, curve } = shares(lab),
    half = width / 2 - 16,
    base = height - 18,
    span = base - 20;
  g.fillText("share of the push on its k hardest negatives", 10, 12);
  if (total > 0)
    line(
      g,
      [[10, base], ...curve.map((v, k) => [10 + ((k + 1) / curve.length) * (half - 10), base - v * span])],
      rgb(ORANGE),
    );
  g.fillText("k = 0", 10, height - 5);
  tick(g, String(curve.length), half, height - 5, width);
  const share = (k) => `${(100 * (curve[Math.min(k, curve.length) - 1] ?? 0)).toFixed(0)} %`;
  say(
    lab.note,
    total > 0
      ? `Of all the push on ${lab.meta.names[lab.anchor]}'s negatives, the hardest one (${lab.meta.columnNames[hardest]}) gets ${share(1)}, the hardest 5 get ${share(5)}, the harder half gets ${share(Math.ceil(curve.length / 2))}. ${GRADIENTS}`
      : `No negative of ${lab.meta.names[lab.anchor]} is pushed. ${GRADIENTS}`,
  );
  const order = Array.from({ length: lab.n }, (_, i) => i).filter((i) => lab.out.weight[i] > 0);
  order.sort((a, b) => lab.out.loss[b] - lab.out.loss[a]);
  const top = Math.max(1e-12, ...order.map((i) => lab.out.loss[i])),
    left = half + 24,
    wide = (width - left - 10) / Math.max(1, order.length);
  lab.sorted = { order, left, wide };
  g.fillStyle = lab.ink;
  g.fillText(`loss of ${order.length} anchors, largest first (up to ${number(top)})`, left, 12);
  order.forEach((i, k) => {
    const h = Math.max(1, (lab.out.loss[i] / top) * span);
    g.fillStyle = i === lab.anchor || (lab.hover && lab.hover[0] === i) ? lab.accent : rgb(GRAY, 0.7);
    g.fillRect(left + k * wide, base - h, Math.max(1, wide - 0.5), h);
  });
}

function anchorAt(lab, e) {
  const { order, left, wide } = lab.sorted || { order: [] };
  return order[Math.floor((e.offsetX - left) / wide)];
}
