// Figures that change with the steps, each with its curve.

import { line, sizeCanvas, theme } from "./canvas.js";
import { el, say } from "./dom.js";

/**
 * The element, and what it is filled with by `drawCourse`.
 *
 * @param {string[][]} names of the figures, each with what helps to read it
 * @param {string} label
 */
export function buildCourse(names, label) {
  const figures = names.map(() => el("dd", {})),
    rows = names.map(([name, help = ""], k) => el("div", { title: help }, el("dt", {}, name), figures[k])),
    canvas = el("canvas", { class: "ringcurves", role: "img", "aria-label": label });
  return { figures, canvas, root: el("div", { class: "course" }, el("dl", {}, ...rows), canvas) };
}

const HISTORY = 400; // points of a curve

/**
 * The course with another point at its end; of a longer course every second, fourth, … step is kept.
 *
 * @param {number[][]} history each point with its step first
 * @param {number[]} point
 */
export function remembered(history, point) {
  const stride = history.length > 1 ? history[1][0] - history[0][0] : 1;
  if (!history.length || point[0] - history.at(-1)[0] >= stride) history.push(point);
  return history.length > HISTORY ? history.filter((_point, k) => k % 2 === 0) : history;
}

/**
 * @param {ReturnType<typeof buildCourse>} course
 * @param {{ text: string, ends: number[], curves: number[][][] }[]} rows the first curve of a row is the one of now
 */
export function drawCourse({ figures, canvas }, rows) {
  const [g, width, height] = sizeCanvas(canvas),
    { ink } = theme(canvas),
    high = height / rows.length,
    steps = rows.flatMap(({ curves }) => curves.flat().map(([step]) => step)),
    first = steps.reduce((a, b) => Math.min(a, b), Infinity),
    last = steps.reduce((a, b) => Math.max(a, b), first + 1);
  rows.forEach(({ text, ends: [low, top], curves }, k) => {
    say(figures[k], text);
    curves.forEach((curve, earlier) => {
      const x = (step) => 4 + ((step - first) / (last - first)) * (width - 8),
        y = (v) => (k + 1) * high - 10 - ((v - low) / (top - low)) * (high - 20);
      g.globalAlpha = earlier ? 0.3 : 1;
      if (curve.length > 1)
        line(
          g,
          curve.map(([step, v]) => [x(step), y(v)]),
          ink,
          1.5,
        );
    });
  });
  g.globalAlpha = 1;
}
