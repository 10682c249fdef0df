// Points on a circle under a loss: they follow its gradient, step by step, in the browser.

import {
  BLUE,
  GREEN,
  ORANGE,
  el,
  line,
  number,
  offerCsv,
  offerPicture,
  rgb,
  sizeCanvas,
  theme,
} from "../shared/dom.js";
import { unpack } from "../shared/transport.js";
import { fromSlider, knobField, setKnob, toSlider } from "../shared/knob.js";
import { evaluate } from "../shared/kernels.js";

const SPEEDS = [0.002, 1]; // smallest and largest step
const HISTORY = 400; // steps that the curves show
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
  TURN = 1 << 18; // of an angle as three letters
const SHAPES = ["disc", "square", "triangle", "diamond"];
const PALETTE = [BLUE, ORANGE, GREEN, [198, 91, 155], [217, 178, 58], [122, 107, 209]];

export default function (component) {
  const { parentElement, setStateValue } = component,
    data = unpack(component.data);
  const ring = parentElement._ring || (parentElement._ring = build(parentElement));
  ring.send = setStateValue;
  applyMeta(ring, data.meta);
  tick(ring);
  return () => {
    cancelAnimationFrame(ring.frame);
    ring.observer.disconnect();
    ring.root.remove();
    parentElement._ring = null;
  };
}

function build(parent) {
  const ring = { running: false, step: 0, scatter: 0, timings: [], value: 1 };
  ring.canvas = el("canvas", { class: "ring", tabindex: 0, role: "img" });
  ring.curves = el("canvas", { class: "ringcurves", role: "img" });
  ring.run = el("button", { type: "button", onclick: () => runOrPause(ring) }, "Run");
  const button = (text, onclick) => el("button", { type: "button", onclick }, text);
  ring.slider = el("input", { type: "range", min: 0, max: 1000, step: 1 });
  ring.readout = knobField(
    () => ring.meta.knob,
    (v) => {
      ring.slider.value = toSlider(ring.meta.knob, v);
      setKnob(ring, v);
      ring.history.length = 0;
      tick(ring);
      report(ring);
    },
  );
  ring.knobName = el("span", {});
  ring.speed = el("input", { type: "range", min: 0, max: 1000, step: 1, value: 600, "aria-label": "step size" });
  ring.speed.onchange = () => report(ring);
  ring.groups = el("input", { type: "number", min: 1, max: 20, value: 2, "aria-label": "groups" });
  ring.points = el("input", { type: "number", min: 2, max: 400, value: 24, "aria-label": "points" });
  ring.groups.onchange = ring.points.onchange = () => {
    restart(ring);
    report(ring);
  };
  ring.note = el("p", { class: "hint" });
  ring.root = el(
    "div",
    { class: "lab" },
    el(
      "div",
      { class: "bar" },
      ring.run,
      button("Step", () => {
        ring.running = false;
        advance(ring);
        tick(ring);
        report(ring);
      }),
      button("Scatter again", () => {
        ring.scatter++;
        restart(ring);
        report(ring);
      }),
      el("label", {}, "points ", ring.points),
      el("label", {}, "groups ", ring.groups),
      el("label", {}, "step size ", ring.speed),
      el("span", { class: "space" }),
      el(
        "span",
        { class: "group" },
        button("PNG", () => savePicture(ring)),
        button("CSV", () => saveCircle(ring)),
      ),
    ),
    el("div", { class: "bar" }, el("div", { class: "knob" }, ring.knobName, ring.slider, ring.readout)),
    el(
      "div",
      { class: "body" },
      ring.canvas,
      el(
        "div",
        {},
        ring.note,
        ring.curves,
        el(
          "p",
          { class: "hint" },
          "Keys on the circle: n and p choose a point, ← and → turn it, space runs and pauses, s steps.",
        ),
      ),
    ),
  );
  parent.append(ring.root);
  ring.slider.oninput = () => {
    setKnob(ring, fromSlider(ring.meta.knob, ring.slider.value));
    ring.history.length = 0;
    tick(ring);
  };
  ring.slider.onchange = () => report(ring);
  ring.canvas.onpointerdown = (e) => {
    ring.held = pointAt(ring, e);
    ring.canvas.setPointerCapture(e.pointerId);
  };
  ring.canvas.onpointermove = (e) => {
    if (ring.held >= 0) {
      ring.angles[ring.held] = angleOf(ring, e);
      ring.moved = true;
      tick(ring);
    }
  };
  ring.canvas.onpointerup = ring.canvas.onpointercancel = () => {
    const held = ring.held >= 0;
    ring.held = -1;
    tick(ring);
    if (held && !ring.running) report(ring);
  };
  ring.canvas.onkeyup = ring.canvas.onblur = () => {
    if (ring.byKey && !ring.running) report(ring);
    ring.byKey = false;
  };
  ring.canvas.onkeydown = (e) => keys(ring, e);
  ring.held = ring.chosen = -1;
  ring.observer = new ResizeObserver(() => tick(ring));
  ring.observer.observe(ring.root);
  return ring;
}

/** The server hears of what was let go; while the points run it hears nothing of their places. */
function report(ring) {
  const at = ring.moved ? written(ring.angles) : "";
  ring.send("chosen", {
    value: ring.meta.knob ? ring.value : null,
    groups: ring.count,
    points: ring.n,
    scatter: ring.scatter,
    speed: Number(ring.speed.value),
    at,
  });
}

function runOrPause(ring) {
  ring.running = !ring.running;
  tick(ring);
  if (!ring.running) report(ring);
}

/** Angles as letters that an address can hold, and back; null for what are none. */
function written(angles) {
  return Array.from(angles, (a) => {
    const q = ((Math.round((a / (2 * Math.PI)) * TURN) % TURN) + TURN) % TURN;
    return LETTERS[q >> 12] + LETTERS[(q >> 6) & 63] + LETTERS[q & 63];
  }).join("");
}

function readAngles(text, n) {
  const values = Array.from(text, (letter) => LETTERS.indexOf(letter));
  if (values.length !== 3 * n || values.includes(-1)) return null;
  return Float64Array.from(
    { length: n },
    (_, k) => ((values[3 * k] * 4096 + values[3 * k + 1] * 64 + values[3 * k + 2]) / TURN) * 2 * Math.PI,
  );
}

function applyMeta(ring, meta) {
  const name = meta.content,
    first = ring.name === undefined;
  ring.meta = meta;
  ring.kernel = { ...meta.kernel };
  const { knob } = meta;
  ring.slider.disabled = !knob;
  ring.knobName.textContent = knob ? knob.label : "no knob to drag";
  ring.slider.setAttribute("aria-label", ring.knobName.textContent);
  ring.readout.setAttribute("aria-label", `${ring.knobName.textContent}, as a number`);
  ring.readout.disabled = !knob;
  if (knob) {
    ring.slider.value = toSlider(knob, knob.value);
    setKnob(ring, knob.value);
  }
  if (ring.name === name) return;
  ring.name = name;
  if (first) {
    ring.points.value = meta.points;
    ring.groups.value = meta.groups;
    ring.scatter = meta.scatter;
    ring.speed.value = meta.speed;
  }
  restart(ring);
  const places = first && readAngles(meta.at, ring.n);
  if (places) Object.assign(ring, { angles: places, moved: true });
}

/** Points at angles that a small generator draws from the seed, and their groups. */
function restart(ring) {
  const n = Math.min(400, Math.max(2, Number(ring.points.value) || 24)),
    g = Math.min(n, Math.max(1, Number(ring.groups.value) || 2));
  let state = 12345 + 977 * ring.scatter;
  const random = () => (state = (state * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff;
  ring.angles = Float64Array.from({ length: n }, () => 2 * Math.PI * random());
  ring.group = Array.from({ length: n }, (_, i) => i % g);
  ring.S = new Float64Array(n * n); // at τ = 0.01 float32 scores would show in the forces
  ring.M = new Uint8Array(n * n);
  for (let i = 0; i < n; i++)
    for (let j = 0; j < n; j++) ring.M[i * n + j] = i === j ? 3 : ring.group[i] === ring.group[j] ? 1 : 2;
  Object.assign(ring, { n, count: g, step: 0, history: [], out: null, most: 0, moved: false });
  tick(ring);
}

/** Scores of points at these angles as the loss compares them. */
export function circleScores(angles, score, S) {
  const n = angles.length;
  for (let i = 0; i < n; i++)
    for (let j = 0; j < n; j++) {
      const d = angles[i] - angles[j];
      S[i * n + j] =
        score === "dot" ? Math.cos(d) : score === "distance" ? 2 * Math.abs(Math.sin(d / 2)) : 4 * Math.sin(d / 2) ** 2;
    }
  return S;
}

/** ∂value/∂angle (n): through the scores of every anchor, and of every anchor it is compared with. */
export function circleGradient(angles, score, out) {
  const n = angles.length,
    force = new Float64Array(n);
  let total = 0;
  for (let i = 0; i < n; i++) total += out.weight[i];
  if (!(total > 0)) return force;
  for (let i = 0; i < n; i++) {
    const share = out.weight[i] / total;
    if (!share) continue;
    for (let j = 0; j < n; j++) {
      const g = out.grad[i * n + j];
      if (!g) continue;
      const d = angles[i] - angles[j],
        half = Math.sin(d / 2);
      const slope =
        score === "dot"
          ? -Math.sin(d)
          : score === "distance"
            ? half === 0
              ? 0
              : Math.sign(half) * Math.cos(d / 2)
            : 2 * Math.sin(d);
      force[i] += share * g * slope;
      force[j] -= share * g * slope;
    }
  }
  return force;
}

function compute(ring) {
  circleScores(ring.angles, ring.meta.score, ring.S);
  ring.out = evaluate(
    ring.S,
    ring.M,
    ring.n,
    ring.n,
    ring.kernel,
    ring.out && ring.out.n === ring.n ? forget(ring.out) : null,
  );
  ring.force = circleGradient(ring.angles, ring.meta.score, ring.out);
  Object.assign(ring, qualities(ring));
}

/** The triplet kernel keeps sorted rows of a matrix that doesn't change; here it does. */
function forget(out) {
  out.sorted.fill(undefined);
  return out;
}

/** Alignment: mean squared distance of positive pairs. Uniformity: log mean exp(−2 d²) of all. */
function qualities(ring) {
  const { angles, n, group } = ring;
  let near = 0,
    pairs = 0,
    spread = 0;
  for (let i = 0; i < n; i++)
    for (let j = 0; j < i; j++) {
      const d = 4 * Math.sin((angles[i] - angles[j]) / 2) ** 2;
      spread += Math.exp(-2 * d);
      if (group[i] === group[j]) {
        near += d;
        pairs++;
      }
    }
  return { alignment: pairs ? near / pairs : NaN, uniformity: Math.log(spread / ((n * (n - 1)) / 2)) };
}

/** One step of gradient descent on the angles; no point turns by more than a tenth of a radian. */
function advance(ring) {
  compute(ring);
  ring.moved = true;
  const rate = ring.n * SPEEDS[0] * Math.pow(SPEEDS[1] / SPEEDS[0], ring.speed.value / 1000);
  for (let i = 0; i < ring.n; i++)
    if (i !== ring.held) ring.angles[i] -= Math.max(-0.1, Math.min(0.1, rate * ring.force[i]));
  ring.step++;
  ring.history.push([ring.out.value, ring.alignment, ring.uniformity]);
  if (ring.history.length > HISTORY) ring.history.shift();
}

function tick(ring) {
  ring.run.textContent = ring.running ? "Pause" : "Run";
  if (ring.frame) return;
  ring.frame = requestAnimationFrame(() => {
    ring.frame = 0;
    if (!ring.root.isConnected) return;
    const start = performance.now();
    if (ring.running) advance(ring);
    compute(ring);
    drawRing(ring);
    drawHistory(ring);
    if (ring.running) {
      ring.timings.push(performance.now() - start);
      tick(ring);
    }
  });
}

function place(ring) {
  const w = ring.canvas.clientWidth,
    h = ring.canvas.clientHeight;
  return { x: w / 2, y: h / 2, r: Math.min(w, h) * 0.43 };
}

function drawRing(ring) {
  const [g] = sizeCanvas(ring.canvas),
    { x, y, r } = place(ring),
    { ink, accent } = theme(ring.root);
  g.globalAlpha = 0.25;
  g.strokeStyle = ink;
  g.beginPath();
  g.arc(x, y, r, 0, 2 * Math.PI);
  g.stroke();
  g.globalAlpha = 1;
  const top = Math.max(1e-9, ...ring.force.map(Math.abs)),
    size = ring.n > 80 ? 4 : 6;
  ring.most = Math.max(ring.most, top);
  const unit = Math.max(top, 0.05 * ring.most); // at rest, what is left of the forces stays small
  for (let i = 0; i < ring.n; i++) {
    const a = ring.angles[i],
      px = x + r * Math.cos(a),
      py = y - r * Math.sin(a);
    const length = (-ring.force[i] / unit) * r * 0.25; // downhill, along the tangent
    if (Math.abs(length) > 1) arrow(g, px, py, -Math.sin(a) * length, -Math.cos(a) * length, ink);
    g.fillStyle = rgb(PALETTE[ring.group[i] % PALETTE.length]);
    mark(g, SHAPES[ring.group[i] % SHAPES.length], px, py, size);
    if (i === ring.chosen) {
      g.strokeStyle = accent;
      g.lineWidth = 2;
      g.strokeRect(px - 9, py - 9, 18, 18);
    }
  }
  const o = ring.out;
  ring.note.textContent = o.valid
    ? `step ${ring.step}: loss ${number(o.value)}, alignment ${Number.isNaN(ring.alignment) ? "undefined" : number(ring.alignment)} (0: positives coincide), uniformity ${number(ring.uniformity)} (lower: more evenly spread). The longest arrow is a gradient of ${number(top)} per radian.`
    : "No point has both the partners that this loss needs, so nothing moves. Choose other groups.";
  ring.canvas.setAttribute(
    "aria-label",
    `${ring.n} points on a circle. ${ring.note.textContent} n and p choose a point, left and right turn it, space runs and pauses, s steps.`,
  );
}

function arrow(g, x, y, dx, dy, color) {
  const ex = x + dx,
    ey = y + dy,
    a = Math.atan2(dy, dx),
    head = Math.min(6, Math.hypot(dx, dy) / 2);
  line(
    g,
    [
      [x, y],
      [ex, ey],
    ],
    color,
    1.2,
  );
  line(
    g,
    [
      [ex - head * Math.cos(a - 0.5), ey - head * Math.sin(a - 0.5)],
      [ex, ey],
      [ex - head * Math.cos(a + 0.5), ey - head * Math.sin(a + 0.5)],
    ],
    color,
    1.2,
  );
}

/** Groups differ in shape as well as in color. */
function mark(g, shape, x, y, r) {
  g.beginPath();
  if (shape === "disc") g.arc(x, y, r, 0, 2 * Math.PI);
  else if (shape === "square") g.rect(x - r, y - r, 2 * r, 2 * r);
  else if (shape === "triangle") {
    g.moveTo(x, y - r * 1.2);
    g.lineTo(x + r * 1.1, y + r);
    g.lineTo(x - r * 1.1, y + r);
  } else {
    g.moveTo(x, y - r * 1.3);
    g.lineTo(x + r * 1.3, y);
    g.lineTo(x, y + r * 1.3);
    g.lineTo(x - r * 1.3, y);
  }
  g.fill();
}

function drawHistory(ring) {
  const [g, width, height] = sizeCanvas(ring.curves),
    { ink } = theme(ring.root),
    third = height / 3;
  ["loss", "alignment", "uniformity"].forEach((name, k) => {
    const values = ring.history.map((q) => q[k]).filter(Number.isFinite),
      top = Math.max(...values),
      low = Math.min(...values);
    g.fillStyle = ink;
    const range = values.length ? `: ${number(low)} to ${number(top)}` : ": press Run or Step";
    g.fillText(name + range, 4, k * third + 12);
    const y = (v) => (k + 1) * third - 6 - ((v - low) / (top - low || 1)) * (third - 26);
    if (values.length > 1)
      line(
        g,
        values.map((v, s) => [4 + (s / (values.length - 1)) * (width - 8), y(v)]),
        rgb([ORANGE, BLUE, GREEN][k]),
      );
  });
  ring.curves.setAttribute("aria-label", "loss, alignment and uniformity over the last steps");
}

function savePicture(ring) {
  const { ink, paper } = theme(ring.root);
  offerPicture([ring.canvas, ring.curves], paper, "circle.png", ring.note.textContent, ink);
}

/** Where every point is, the force on it, and the course of the loss. */
function saveCircle(ring) {
  const points = Array.from(ring.angles, (a, i) => [i, ring.group[i], a, -ring.force[i], ring.out.loss[i]]);
  const past = ring.history.map((values, k) => [ring.step - ring.history.length + k, ...values]);
  offerCsv(
    [["point", "group", "angle", "force", "loss"], ...points, [], ["step", "loss", "alignment", "uniformity"], ...past],
    "circle.csv",
  );
}

function angleOf(ring, e) {
  const { x, y } = place(ring);
  return Math.atan2(y - e.offsetY, e.offsetX - x);
}

function pointAt(ring, e) {
  const { x, y, r } = place(ring);
  let best = -1,
    near = 16 * 16;
  for (let i = 0; i < ring.n; i++) {
    const d = (x + r * Math.cos(ring.angles[i]) - e.offsetX) ** 2 + (y - r * Math.sin(ring.angles[i]) - e.offsetY) ** 2;
    if (d < near) {
      near = d;
      best = i;
    }
  }
  return best;
}

function keys(ring, e) {
  if (e.key === "n" || e.key === "p") ring.chosen = (ring.chosen + (e.key === "n" ? 1 : -1) + ring.n) % ring.n;
  else if ((e.key === "ArrowLeft" || e.key === "ArrowRight") && ring.chosen >= 0) {
    ring.angles[ring.chosen] += e.key === "ArrowLeft" ? 0.05 : -0.05;
    ring.moved = ring.byKey = true;
  } else if (e.key === " ") runOrPause(ring);
  else if (e.key === "s") {
    ring.running = false;
    ring.byKey = true;
    advance(ring);
  } else return;
  e.preventDefault();
  tick(ring);
}
