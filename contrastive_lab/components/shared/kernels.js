// The kernels that the browser computes while knobs are dragged: softmax, hinge, sigmoid and robust.
//
// S: Float32Array (n·w) scores; M: Uint8Array (n·w) 0 not comparable, 1 positive, 2 negative, 3 self.
// kernel: the loss's own metadata (see `Loss.kernel` in contrastive_core/losses). A browser test
// holds every result to the library's anatomy.

import { pairRow, tripletRow } from "./hinge.js";
import { keptNegatives, listedRow, logMeanPositive } from "./negatives.js";
import { robustRow, sigmoidRow } from "./sigmoid.js";
import { softmaxRow } from "./softmax.js";

/** @param {Kernel} kernel */
function rowOf(kernel) {
  if (kernel.family === "softmax")
    return kernel.negatives === "hard" || kernel.positive === "out" ? listedRow : softmaxRow;
  if (kernel.family === "hinge") return kernel.form === "pair" ? pairRow : tripletRow;
  return kernel.family === "sigmoid" ? sigmoidRow : robustRow;
}

/**
 * Loss (n), weight (n), pair weights (n·w), gradients of each anchor's loss (n·w), effective negatives (n: the
 * exponential of the entropy of their shares of the push), active pairs or triplets (n; of these `hard`, the rest
 * semi-hard), negatives left out (n), and the value. Arrays of `into` are used again.
 *
 * @param {Scores} S
 * @param {Uint8Array} M
 * @param {number} n
 * @param {number} w
 * @param {Kernel} kernel
 * @param {KernelOutput | null} [into]
 */
export function evaluate(S, M, n, w, kernel, into) {
  const out = into && into.n === n && into.w === w ? into : make(n, w);
  out.pair.fill(0);
  out.grad.fill(0);
  const row = rowOf(kernel),
    kept = keptNegatives(S, M, n, w, kernel, out);
  if (kernel.weighting === "von_mises")
    kernel = { ...kernel, log_mean: kernel.log_mean ?? logMeanPositive(S, M, kernel) };
  for (let i = 0; i < n; i++) row(S, kept, i * w, w, kernel, i, out);
  let total = 0,
    weight = 0,
    valid = 0;
  for (let i = 0; i < n; i++) {
    total += out.loss[i] * out.weight[i];
    weight += out.weight[i];
    if (out.weight[i] > 0) valid++;
  }
  out.shares = null; // of the push, of the last figures
  out.value = weight > 0 ? total / weight : 0;
  out.valid = valid;
  return out;
}

/**
 * @param {number} n
 * @param {number} w
 * @returns {KernelOutput}
 */
export function make(n, w) {
  return {
    n,
    w,
    value: 0,
    valid: 0,
    loss: new Float64Array(n),
    weight: new Float64Array(n),
    effective: new Float64Array(n),
    negatives: new Float64Array(n),
    active: new Float64Array(n),
    hard: new Float64Array(n),
    leftOut: new Float64Array(n),
    pair: new Float32Array(n * w),
    grad: new Float32Array(n * w),
    sorted: new Array(n),
    shares: null,
  };
}
