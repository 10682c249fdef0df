// The circle with both views of every image, and the curves of spread, mean resultant length and loss.

import { COLLAPSED } from "./training.js";
import { BLUE, GRAY, GREEN, ORANGE, PALETTE, line, rgb, sizeCanvas, theme } from "../shared/canvas.js";
import { number, say } from "../shared/dom.js";
import { _ } from "../shared/locale.js";

const INNER = 0.84; // where predictions stand, of the circle's radius
const LOW = 28; // pixels below a plot

/**
 * @param {any} part
 */
export function drawRing(part) {
  const [g, w, h] = sizeCanvas(part.canvas),
    { ink } = theme(part.root),
    r = Math.min(w, h) * 0.43,
    at = ([a, b], radius = r) => [w / 2 + radius * a, h / 2 - radius * b];
  g.strokeStyle = ink;
  for (const [radius, alpha] of part.predictor
    ? [
        [r, 0.25],
        [r * INNER, 0.12],
      ]
    : [[r, 0.25]]) {
    g.globalAlpha = alpha;
    g.beginPath();
    g.arc(w / 2, h / 2, radius, 0, 2 * Math.PI);
    g.stroke();
  }
  const { points, predicted } = part.places;
  for (let i = 0; i < points.length; i += 2) {
    const color = PALETTE[(i / 2) % PALETTE.length],
      two = [points[i], points[i + 1]].map((z) => at(z));
    g.globalAlpha = 0.5;
    line(g, two, color, 1.5);
    g.globalAlpha = 1;
    if (part.predictor)
      for (const z of [predicted[i], predicted[i + 1]]) {
        const [x, y] = at(z, r * INNER);
        g.strokeStyle = color;
        g.lineWidth = 1.5;
        g.beginPath();
        g.arc(x, y, 3, 0, 2 * Math.PI);
        g.stroke();
      }
    g.fillStyle = color;
    for (const [x, y] of two) {
      g.beginPath();
      if (i / 2 < PALETTE.length) g.arc(x, y, 5, 0, 2 * Math.PI);
      else g.rect(x - 4.5, y - 4.5, 9, 9); // images of one color differ in shape
      g.fill();
    }
  }
  say(part.note, inWords(part));
  const views = _("{n} views on a circle.", { n: points.length });
  part.canvas.setAttribute("aria-label", `${views} ${part.note.textContent}`);
}

/**
 * Where the training stands.
 *
 * @param {any} part
 */
export function inWords({ training, spread, resultant, collapsedAt }) {
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
 * @param {any} part
 */
export function drawCurves(part) {
  const [g, width, height] = sizeCanvas(part.curves),
    { ink } = theme(part.root),
    upper = Math.round(height * 0.66),
    last = Math.max(50, ...[part, ...part.earlier].map(({ history }) => history.at(-1)?.[0] ?? 0)),
    x = (step) => 30 + (step / last) * (width - 42);
  axes(g, ink, { x, last, top: 22, low: upper - LOW, from: 0, to: 1 });
  const y = (v) => upper - LOW - v * (upper - LOW - 22),
    curve = (history, column, color) =>
      line(
        g,
        history.map((one) => [x(one[0]), y(one[column])]),
        rgb(color),
        2,
      );
  g.globalAlpha = 0.45;
  for (const { history } of part.earlier) curve(history, 1, GRAY);
  g.globalAlpha = 1;
  curve(part.history, 2, ORANGE);
  curve(part.history, 1, BLUE);
  const losses = part.history.map((one) => one[3]),
    low = height - LOW + 10,
    top = upper + 22;
  axes(g, ink, { x, last, top, low, from: -1, to: 1 });
  const at = (v) => low - ((v + 1) / 2) * (low - top);
  line(
    g,
    losses.map((v, k) => [x(part.history[k][0]), at(v)]),
    rgb(GREEN),
    2,
  );
  g.fillStyle = ink;
  g.fillText(_("spread (blue), mean resultant length (orange), earlier spreads (gray)"), 4, 12, width - 8);
  g.fillText(_("loss"), 4, upper + 12);
  part.curves.setAttribute("aria-label", _("spread, mean resultant length and loss over the steps"));
}

/** The ends of both axes, and a line along each. */
function axes(g, ink, { x, last, top, low, from, to }) {
  g.fillStyle = ink;
  g.globalAlpha = 0.8;
  g.textAlign = "right";
  g.fillText(String(to), 24, top + 8);
  g.fillText(String(from), 24, low);
  g.fillText(String(last), x(last), low + 14);
  g.textAlign = "left";
  g.fillText("0", x(0), low + 14);
  g.globalAlpha = 0.25;
  line(
    g,
    [
      [x(0), top],
      [x(0), low],
      [x(last), low],
    ],
    ink,
    1,
  );
  g.globalAlpha = 1;
}
