// The loss between two towers in both directions: the shown one, and that of the turned matrix.

import { isAcross } from "./pairs.js";
import { evaluate } from "../shared/kernels.js";

/**
 * Scores and mask with rows and columns in each other's place.
 *
 * @template {Float32Array | Uint8Array} T
 * @param {T} values (n·w)
 * @param {number} n
 * @param {number} w
 * @returns {T} (w·n)
 */
export function turned(values, n, w) {
  const found = values.slice();
  for (let i = 0; i < n; i++) for (let j = 0; j < w; j++) found[j * n + i] = values[i * w + j];
  return /** @type {T} */ (found);
}

/**
 * The mean of the loss in both directions, as the library has it; null where rows are of one tower, only the library
 * computes the loss, or one direction is undefined.
 *
 * @param {LossViewState} lab
 */
export function valueBothWays(lab) {
  if (!isAcross(lab) || !lab.kernel || !lab.out?.valid) return null;
  const back = (lab.cache.back ??= { S: turned(lab.S, lab.n, lab.w), M: turned(lab.M, lab.n, lab.w), out: null });
  if (lab.stale || !back.out) back.out = evaluate(back.S, back.M, lab.w, lab.n, lab.kernel, back.out);
  return back.out.valid ? (lab.out.value + back.out.value) / 2 : null;
}
