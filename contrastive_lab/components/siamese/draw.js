// The circle with both views of every image, and the course of the training.

import { COLLAPSED } from "./training.js";
import { line, sizeCanvas, theme } from "../shared/canvas.js";
import { drawCourse } from "../shared/course.js";
import { number, say } from "../shared/dom.js";
import { drawMark, lookOf } from "../shared/group_marks.js";
import { _ } from "../shared/locale.js";

const INNER = 0.84; // where predictions stand, of the circle's radius

/** @param {any} part */
export function drawRing(part) {
  const [g, w, h] = sizeCanvas(part.canvas),
    { ink } = theme(part.root),
    r = Math.min(w, h) * 0.41,
    at = ([a, b], radius = r) => /** @type {[number, number]} */ ([w / 2 + radius * a, h / 2 - radius * b]);
  const ring = (radius, alpha) => {
    g.globalAlpha = alpha;
    drawCircle(g, ink, [w / 2, h / 2], radius);
  };
  ring(r, 0.25);
  if (part.predictor) ring(r * INNER, 0.12);
  const { points, predicted } = part.places;
  for (let i = 0; i < points.length; i += 2) {
    const look = lookOf(i / 2),
      two = [points[i], points[i + 1]].map((z) => at(z));
    g.globalAlpha = 0.5;
    line(g, two, look.color, 1.5);
    g.globalAlpha = 1;
    if (part.predictor)
      for (const z of [predicted[i], predicted[i + 1]]) drawCircle(g, look.color, at(z, r * INNER), 4);
    for (const spot of two) {
      drawMark(g, look, spot, 8);
      if (part.stopGradient) drawCircle(g, ink, spot, 13); // a target that the gradient does not move
    }
  }
  part.meter.value = part.spread;
  say(
    part.spreadShown,
    part.spread < COLLAPSED ? _("collapsed") : _("spread {spread}", { spread: number(part.spread) }),
  );
  say(part.note, inWords(part));
  const views = _("{n} views on a circle.", { n: points.length });
  part.canvas.setAttribute("aria-label", `${views} ${part.note.textContent}`);
}

function drawCircle(g, color, [x, y], r) {
  g.strokeStyle = color;
  g.lineWidth = 1.5;
  g.beginPath();
  g.arc(x, y, r, 0, 2 * Math.PI);
  g.stroke();
}

/** Where the training stands. */
function inWords({ training, spread, resultant, collapsedAt }) {
  const values = { step: training.step, spread: number(spread), length: number(resultant), at: collapsedAt };
  if (!training.step)
    return _("At the start: spread {spread}, mean resultant length {length}. Press Run or Step.", values);
  const said = _("Step {step}: loss {loss}, spread {spread}, mean resultant length {length}.", {
    ...values,
    loss: number(training.loss),
  });
  if (!collapsedAt || spread >= COLLAPSED) return said;
  const collapsed = _("Collapsed at step {at}.", values);
  return `${said} ${collapsed}`;
}

/**
 * Spread, mean resultant length and loss over the steps; the spreads of earlier courses are faint.
 *
 * @param {any} part
 */
export function drawCurves({ course, history, earlier, training, spread, resultant }) {
  const columns = [
    [spread, 0],
    [resultant, 0],
    [training.loss, -1],
  ].map(([now, low], k) => ({
    text: Number.isFinite(now) ? number(now) : "–",
    ends: [low, 1],
    curves: (k ? [history] : [history, ...earlier.map((one) => one.history)]).map((points) =>
      points.map((point) => [point[0], point[k + 1]]),
    ),
  }));
  drawCourse(course, columns);
}
