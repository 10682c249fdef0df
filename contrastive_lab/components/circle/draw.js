// The circle with its forces, and the course of the loss.

import { marginAngle } from "./forces.js";
import { BLUE, GREEN, ORANGE, PALETTE, line, rgb, sizeCanvas, theme } from "../shared/canvas.js";
import { number } from "../shared/dom.js";
import { PULL, PUSH, arrow } from "../shared/push_pull.js";
import { _ } from "../shared/locale.js";

const SHAPES = ["disc", "square", "triangle", "diamond"];

/**
 * @param {CircleState} ring
 */
export function place(ring) {
  const w = ring.canvas.clientWidth,
    h = ring.canvas.clientHeight;
  return { x: w / 2, y: h / 2, r: Math.min(w, h) * 0.43 };
}

/**
 * @param {CircleState} ring
 */
export function drawRing(ring) {
  const [g] = sizeCanvas(ring.canvas),
    { x, y, r } = place(ring),
    { ink, accent } = theme(ring.root);
  g.globalAlpha = 0.25;
  g.strokeStyle = ink;
  g.beginPath();
  g.arc(x, y, r, 0, 2 * Math.PI);
  g.stroke();
  g.globalAlpha = 1;
  drawMargin(ring, g, x, y, r, accent);
  if (ring.towers.checked) joinPartners(ring, g, x, y, r, ink);
  const top = Math.max(1e-9, ...ring.force.map(Math.abs)),
    size = ring.n > 80 ? 4 : 6;
  ring.most = Math.max(ring.most, top);
  const unit = Math.max(top, 0.05 * ring.most); // at rest, what is left of the forces stays small
  for (let i = 0; i < ring.n; i++) {
    const a = ring.angles[i],
      px = x + r * Math.cos(a),
      py = y - r * Math.sin(a);
    const length = (-ring.force[i] / unit) * r * 0.25; // downhill, along the tangent
    const pulled = Math.abs(ring.pull[i]) > Math.abs(ring.force[i] - ring.pull[i]); // more than it is pushed
    if (Math.abs(length) > 1) arrow(g, pulled ? PULL : PUSH, [px, py], [-Math.sin(a) * length, -Math.cos(a) * length]);
    const kind = ring.towers.checked ? ring.tower[i] : ring.group[i];
    g.fillStyle = PALETTE[kind % PALETTE.length];
    mark(g, SHAPES[kind % SHAPES.length], px, py, size);
    if (i === ring.chosen) {
      g.strokeStyle = accent;
      g.lineWidth = 2;
      g.strokeRect(px - 9, py - 9, 18, 18);
    }
  }
  ring.towerLegend.hidden = !ring.towers.checked;
  const o = ring.out;
  const alignment = Number.isNaN(ring.alignment) ? "undefined" : number(ring.alignment);
  const gap = ring.towers.checked
    ? _(" Gap between the towers: {gap} (distance of their means).", { gap: number(ring.gap) })
    : "";
  ring.note.textContent = o.valid
    ? _(
        "Step {step}: loss {value}, alignment {alignment} (0: positives coincide), uniformity " +
          "{uniformity} (lower: more evenly spread). The longest arrow is a gradient of {top} per " +
          "radian.",
        { step: ring.step, value: number(o.value), alignment, uniformity: number(ring.uniformity), top: number(top) },
      ) + gap
    : _("No point has the positive and the negative that this loss needs, so nothing moves. Choose other groups.");
  ring.canvas.setAttribute(
    "aria-label",
    [
      _("{n} points on a circle.", { n: ring.n }),
      ring.note.textContent,
      _("The keys n and p choose a point, left and right turn it, space runs and pauses, s steps."),
    ].join(" "),
  );
}

const MOST_LINES = 400;

/** A line between the partners of two towers, where they are few enough to be told apart. */
function joinPartners({ n, M, angles }, g, x, y, r, color) {
  const lines = [];
  for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) if (M[i * n + j] === 1) lines.push([i, j]);
  if (lines.length > MOST_LINES) return;
  const at = (i) => [x + r * Math.cos(angles[i]), y - r * Math.sin(angles[i])];
  g.globalAlpha = 0.35;
  for (const [i, j] of lines) line(g, [at(i), at(j)], color, 1);
  g.globalAlpha = 1;
}

/** How far the margin reaches from the point that is held or chosen, or the first: an arc outside the circle. */
function drawMargin(ring, g, x, y, r, color) {
  const i = Math.max(0, ring.held, ring.chosen),
    half = marginAngle(ring, i);
  if (!half) return;
  const a = -ring.angles[i],
    far = r * 1.09;
  g.strokeStyle = color;
  g.lineWidth = 2;
  g.beginPath();
  if (half < Math.PI) g.arc(x, y, far, a - half, a + half);
  else g.arc(x, y, far, 0, 2 * Math.PI);
  g.stroke();
  const end = (to, inner) => [x + inner * Math.cos(to), y + inner * Math.sin(to)];
  if (half < Math.PI) for (const to of [a - half, a + half]) line(g, [end(to, r * 0.97), end(to, far)], color);
  g.fillStyle = color;
  g.fillText("ε", ...end(a, r * 1.14));
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

/**
 * @param {CircleState} ring
 */
export function drawHistory(ring) {
  const [g, width, height] = sizeCanvas(ring.curves),
    { ink } = theme(ring.root),
    third = height / 3;
  [_("loss"), _("alignment"), _("uniformity")].forEach((name, k) => {
    const values = ring.history.map((point) => point[k + 1]).filter(Number.isFinite),
      top = Math.max(...values),
      low = Math.min(...values);
    g.fillStyle = ink;
    const range = values.length
      ? _(": {low} to {top}", { low: number(low), top: number(top) })
      : _(": press Run or Step");
    g.fillText(name + range, 4, k * third + 12);
    const y = (v) => (k + 1) * third - 6 - ((v - low) / (top - low || 1)) * (third - 26);
    if (values.length > 1)
      line(
        g,
        values.map((v, s) => [4 + (s / (values.length - 1)) * (width - 8), y(v)]),
        rgb([ORANGE, BLUE, GREEN][k]),
      );
  });
  ring.curves.setAttribute("aria-label", _("loss, alignment and uniformity over the steps"));
}
