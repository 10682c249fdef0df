// The circle with its forces and trails, and the course of the loss.

import { marginAngle } from "./forces.js";
import { axisOf, course, isEven } from "./points.js";
import { line, sizeCanvas, sizeOf, theme } from "../shared/canvas.js";
import { drawCourse } from "../shared/course.js";
import { number, say } from "../shared/dom.js";
import { drawMark, lookOf } from "../shared/group_marks.js";
import { symbolOf } from "../shared/knob.js";
import { N_, _ } from "../shared/locale.js";
import { PULL, PUSH, arrow } from "../shared/push_pull.js";

const BAND = 0.1, // width of the circle, of its radius: points of one place stand side by side
  GOLDEN = 0.618,
  LEAST = 1e-6; // what is smaller is rounding

const INVALID = N_(
  "No point has both the positive and the negative that this loss needs, so nothing moves. Choose other groups.",
);

const figure = (x) => number(Math.abs(x) < LEAST ? 0 : x);

/** @param {CircleState} ring */
export function place(ring) {
  const [w, h] = sizeOf(ring.canvas);
  return { x: w / 2, y: h / 2, r: Math.min(w, h) * 0.41 };
}

/** The radius on which a point is drawn. */
const radiusOf = (i, r) => r * (1 + BAND * (((i * GOLDEN) % 1) - 0.5));

/** @param {CircleState} ring */
export function drawRing(ring) {
  const [g] = sizeCanvas(ring.canvas),
    { x, y, r } = place(ring),
    { ink, accent } = theme(ring.root);
  ring.spots = Array.from(ring.angles, (a, i) => [x + radiusOf(i, r) * Math.cos(a), y - radiusOf(i, r) * Math.sin(a)]);
  g.globalAlpha = 0.1;
  g.strokeStyle = ink;
  g.lineWidth = BAND * r;
  g.beginPath();
  g.arc(x, y, r, 0, 2 * Math.PI);
  g.stroke();
  g.globalAlpha = 1;
  drawMargin(ring, g, x, y, r, accent);
  if (ring.towers.checked) joinPartners(ring, g, ink);
  const looks = (ring.towers.checked ? ring.tower : ring.group).map(lookOf),
    size = ring.n > 80 ? 5 : 8;
  drawTrails(ring, g, looks, { x, y, r, size });
  const top = Math.max(1e-9, ...ring.force.map(Math.abs));
  ring.most = Math.max(ring.most, top);
  const unit = Math.max(top, 0.05 * ring.most); // at rest, what is left of the forces stays small
  ring.spots.forEach((spot, i) => {
    const a = ring.angles[i],
      length = (-ring.force[i] / unit) * r * 0.25; // downhill, along the tangent
    const pulled = Math.abs(ring.pull[i]) > Math.abs(ring.force[i] - ring.pull[i]); // more than it is pushed
    if (Math.abs(length) > 1) arrow(g, pulled ? PULL : PUSH, spot, [-Math.sin(a) * length, -Math.cos(a) * length]);
    drawMark(g, looks[i], spot, size);
    if (i === ring.chosen || i === ring.held) {
      g.strokeStyle = accent;
      g.lineWidth = 2;
      g.strokeRect(spot[0] - size - 4, spot[1] - size - 4, 2 * size + 8, 2 * size + 8);
    }
  });
  tell(ring, top);
}

/** The last steps of each point, as an arc of its color. */
function drawTrails({ trail, angles }, g, looks, { x, y, r, size }) {
  if (!trail.length) return;
  g.globalAlpha = 0.25;
  g.lineWidth = size;
  g.lineCap = "round";
  angles.forEach((a, i) => {
    const from = trail[0][i];
    g.strokeStyle = looks[i].color;
    g.beginPath();
    g.arc(x, y, radiusOf(i, r), -from, -a, a > from);
    g.stroke();
  });
  g.lineCap = "butt";
  g.globalAlpha = 1;
}

/** All that is said of the state. */
function tell(ring, top) {
  ring.towerLegend.hidden = !ring.towers.checked;
  const values = {
    step: ring.step,
    value: figure(ring.out.value),
    alignment: Number.isNaN(ring.alignment) ? "–" : figure(ring.alignment),
    uniformity: number(ring.uniformity),
  };
  say(ring.title, _("Step {step}", values));
  const points = course(ring);
  drawCourse(
    ring.course,
    [values.value, values.alignment, values.uniformity].map((text, k) => {
      const curve = points.map((point) => [point[0], point[k + 1]]).filter((point) => Number.isFinite(point[1]));
      return { text, ends: axisOf(curve.map(([, v]) => v)), curves: [curve] };
    }),
  );
  say(ring.seen, ring.out.valid ? seenOf(ring, top) : _(INVALID));
  const state = _("Step {step}: loss {value}, alignment {alignment}, uniformity {uniformity}.", values);
  say(ring.note, ring.out.valid ? `${state} ${ring.seen.textContent}` : ring.seen.textContent);
  if (ring.described === ring.n) return;
  ring.described = ring.n;
  const keys = _(
    "The keys n and p choose a point, left and right turn it, space runs and pauses, s steps, r scatters the points.",
  );
  const count = _("{n} points on a circle.", { n: ring.n });
  ring.canvas.setAttribute("aria-label", `${count} ${keys}`);
}

/** What the picture shows, in words. */
function seenOf(ring, top) {
  const gap = ring.towers.checked
    ? _("Gap between the towers: {gap} (distance of their means).", { gap: figure(ring.gap) })
    : "";
  const { knob } = ring.meta;
  const state =
    knob && isEven(ring)
      ? _(
          "Each group is at one place, and the places are evenly spaced. The pushes on a point cancel at every " +
            "{setting}, so the points stay where they are.",
          { setting: symbolOf(knob) },
        )
      : _("Points of one group attract each other; all others repel. The longest arrow is a gradient of {top}.", {
          top: figure(top),
        });
  return gap ? `${state} ${gap}` : state;
}

const MOST_LINES = 400;

/** A line between the partners of two towers, where they are few enough to be told apart. */
function joinPartners({ n, M, spots }, g, color) {
  const lines = [];
  for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) if (M[i * n + j] === 1) lines.push([i, j]);
  if (lines.length > MOST_LINES) return;
  g.globalAlpha = 0.35;
  for (const [i, j] of lines) line(g, [spots[i], spots[j]], color, 1);
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
  if (half < Math.PI) for (const to of [a - half, a + half]) line(g, [end(to, r * 0.95), end(to, far)], color);
  g.fillStyle = color;
  g.fillText("ε", ...end(a, r * 1.14));
}
