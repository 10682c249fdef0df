// Loss and derivative of a pair over its distance.

import { BLUE, GRAY, ORANGE, halves, line, rgb, tick, within } from "../../shared/canvas.js";
import { number } from "../../shared/dom.js";
import { PULL, PUSH, bar } from "../../shared/push_pull.js";
import { _ } from "../../shared/locale.js";

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
    steps = Array.from({ length: 121 }, (x, k) => (k / 120) * right);
  const loss = {
    p: (d) => (squared ? 1 : 0.5) * d * d,
    n: (d) => (squared ? Math.max(0, margin - d * d) : 0.5 * Math.max(0, margin - d) ** 2),
  };
  const slope = { p: (d) => (squared ? 2 : 1) * d, n: (d) => (d >= edge ? 0 : squared ? -2 * d : d - margin) };
  const part = (f, title) => (half, high) => {
    const values = steps.flatMap((d) => [f.p(d), f.n(d)]),
      low = Math.min(0, ...values),
      top = Math.max(...values, 1e-9);
    const x = (d) => 10 + (d / right) * (half - 20),
      y = (v) => high - 20 - ((v - low) / (top - low)) * (high - 44);
    g.fillStyle = lab.ink;
    g.fillText(title, 10, 14, half - 20);
    const curve = (of) => steps.map((d) => [x(d), y(of(d))]);
    const zero = () => 0,
      ends = [22, high - 18].map((v) => [x(edge), v]);
    line(g, curve(zero), rgb(GRAY, 0.6), 1);
    line(g, ends, lab.accent);
    line(g, curve(f.p), rgb(BLUE));
    g.setLineDash([7, 4]);
    line(g, curve(f.n), rgb(ORANGE));
    g.setLineDash([]);
    for (let j = 0; j < lab.w; j++) {
      const kind = lab.M[at + j],
        d = lab.S[at + j];
      if ((kind !== 1 && kind !== 2) || d > right) continue;
      bar(g, kind === 1 ? PULL : PUSH, [x(d) - 3, y(kind === 1 ? f.p(d) : f.n(d)) - 3, 6, 6], 0.8);
    }
    g.fillStyle = lab.ink;
    tick(g, "D = 0", x(0), high - 4, half);
    tick(g, `${squared ? "√ε" : "ε"} = ${number(edge)}`, x(edge), high - 4, half);
  };
  const [first, second] = halves(width, height);
  within(g, first, part(loss, _("loss of a pair: positive (blue), negative (orange, dashed)")));
  within(g, second, part(slope, _("its derivative ∂L/∂D: a negative value pushes away")));
}
