// Two settings on the same batch: their difference as numbers, in words, and for every pair. What both
// the browser can compute follows its slider at each frame; the rest redraws on release.

import { meanNegatives, pullOf } from "./figures.js";
import { isFar } from "./pairs.js";
import { BITS, divergingShades, largest } from "./shades.js";
import { GREEN, PINK } from "../shared/canvas.js";
import { number, say } from "../shared/dom.js";
import { symbolOf } from "../shared/knob.js";
import { _ } from "../shared/locale.js";

const SAME = 1e-6; // differences below this are rounding

/**
 * The difference of the weights or, where no weight differs, of how hard each pair is pulled: SupCon's two forms, for
 * one, weigh every pair alike and still pull differently.
 *
 * @param {LossViewState} lab
 * @param {any} two
 * @param {KernelOutput} a
 * @param {KernelOutput} b
 */
export function compare(lab, two, a, b) {
  const count = lab.n * lab.w,
    signs = [isFar(lab) ? 1 : -1, (two.scoreName ?? lab.meta.scoreName).includes("distance") ? 1 : -1];
  two.difference ||= new Float32Array(count);
  for (two.of of ["pair", "grad"]) {
    const [p, q] = two.of === "pair" ? [1, 1] : signs,
      x = a[two.of],
      y = b[two.of],
      d = two.difference;
    for (let k = 0; k < count; k++) d[k] = p * x[k] - q * y[k];
    two.top = largest(d);
    if (two.top > SAME) break;
  }
}

/**
 * @param {LossViewState} lab
 * @param {any} two
 * @param {KernelOutput} a
 * @param {KernelOutput} b
 */
export function fillTable(lab, two, a, b) {
  const i = lab.anchor,
    mean = (o) => (meanNegatives(o, lab.n) || [NaN])[0];
  const rows = [
    [a.value, b.value],
    [mean(a), mean(b)],
    [a.loss[i], b.loss[i]],
    [pullOf(a, lab.M, i, lab.w), pullOf(b, two.M, i, lab.w)],
  ];
  [_("now"), "A"].forEach((name, c) => {
    const [setting, value] = c ? [two, two.value] : [lab, lab.value],
      knob = setting.knob || (c ? null : lab.meta.knob);
    say(lab.table.rows[0].cells[c + 1], knob ? `${name}, ${symbolOf(knob)} ${number(value)}` : name);
  });
  rows.forEach(([x, y], k) =>
    [x, y, x - y].forEach((v, c) => {
      say(lab.table.rows[k + 1].cells[c + 1], Number.isNaN(v) ? _("none") : number(v));
    }),
  );
  lab.tableOf = i;
}

/** @param {any} parts */
export function differenceWords({ top, of }) {
  if (!(top > SAME)) return _("Both settings put the same weight and the same gradient on every pair.");
  const values = { top: number(top) };
  if (of === "pair")
    return _("Green pairs weigh more now, pink pairs more in A. The largest difference is {top}.", values);
  return _(
    "Both settings put the same weight on every pair, but not the same gradient. Green pairs are pulled harder " +
      "now, pink pairs harder in A. The largest difference is {top}.",
    values,
  );
}

/**
 * @param {LossViewState} lab
 * @param {any} two
 */
export function paintDifference(lab, two) {
  two.image ||= new ImageData(Math.max(1, lab.w), Math.max(1, lab.n));
  two.buffer ||= new OffscreenCanvas(Math.max(1, lab.w), Math.max(1, lab.n));
  const { n, w, rows, columns } = lab,
    pixels = new Uint32Array(two.image.data.buffer),
    bits = new Uint32Array(two.difference.buffer),
    table = divergingShades(Math.max(two.top, SAME), false, [PINK, GREEN]);
  for (let r = 0, p = 0; r < n; r++)
    for (let c = 0, at = rows[r] * w; c < w; c++, p++) pixels[p] = table[bits[at + columns[c]] >>> BITS];
  two.buffer.getContext("2d").putImageData(two.image, 0, 0);
}
