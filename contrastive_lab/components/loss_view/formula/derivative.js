// Loss and derivative of a pair over its distance.

import { BLUE, GRAY, ORANGE, line, rgb, tick } from "../../shared/canvas.js";
import { number } from "../../shared/dom.js";

/**
 * Loss and ∂L/∂D over the distance, of a positive and of a negative pair; marks: the anchor's.
 *
 * @param {LossViewState} lab
 * @param {CanvasRenderingContext2D} g
 * @param {number} width
 * @param {number} height
 */
export function drawDerivative(lab, g, width, height) {
  const { margin, squared } = lab.kernel,
    at = lab.anchor * lab.w,
    edge = squared ? Math.sqrt(margin) : margin;
  const right = Math.max(1.4 * edge, 0.5),
    steps = Array.from({ length: 121 }, (_, k) => (k / 120) * right),
    half = width / 2 - 14;
  const loss = {
    p: (d) => (squared ? 1 : 0.5) * d * d,
    n: (d) => (squared ? Math.max(0, margin - d * d) : 0.5 * Math.max(0, margin - d) ** 2),
  };
  const slope = { p: (d) => (squared ? 2 : 1) * d, n: (d) => (d >= edge ? 0 : squared ? -2 * d : d - margin) };
  const part = (left, f, title) => {
    const values = steps.flatMap((d) => [f.p(d), f.n(d)]),
      low = Math.min(0, ...values),
      high = Math.max(...values, 1e-9);
    const x = (d) => left + 10 + (d / right) * (half - 20),
      y = (v) => height - 20 - ((v - low) / (high - low)) * (height - 44);
    g.fillStyle = lab.ink;
    g.fillText(title, left + 10, 14);
    line(
      g,
      [
        [x(0), y(0)],
        [x(right), y(0)],
      ],
      rgb(GRAY, 0.6),
      1,
    );
    line(
      g,
      [
        [x(edge), 22],
        [x(edge), height - 18],
      ],
      lab.accent,
      2,
    );
    line(
      g,
      steps.map((d) => [x(d), y(f.p(d))]),
      rgb(BLUE),
    );
    g.setLineDash([7, 4]);
    line(
      g,
      steps.map((d) => [x(d), y(f.n(d))]),
      rgb(ORANGE),
    );
    g.setLineDash([]);
    for (let j = 0; j < lab.w; j++) {
      const kind = lab.M[at + j],
        d = lab.S[at + j];
      if ((kind !== 1 && kind !== 2) || d > right) continue;
      g.fillStyle = rgb(kind === 1 ? BLUE : ORANGE, 0.8);
      g.fillRect(x(d) - 2, y(kind === 1 ? f.p(d) : f.n(d)) - 2, 5, 5);
    }
    g.fillStyle = lab.ink;
    tick(g, "D = 0", x(0), height - 4, left + half);
    tick(g, `${squared ? "√ε" : "ε"} = ${number(edge)}`, x(edge), height - 4, left + half);
  };
  part(0, loss, "loss of a pair: positive (blue), negative (orange, dashed)");
  part(half + 28, slope, "its derivative ∂L/∂D: below 0 pushes apart");
}
