// The two kernels that the browser computes while a knob is dragged: softmax and hinge.
//
// S: Float32Array (n·w) scores; M: Uint8Array (n·w) 0 not comparable, 1 positive, 2 negative, 3 self.
// kernel: the loss's own metadata (see `Loss.kernel` in contrastive_core/losses). A browser test
// holds every result to the library's anatomy.

import { pairRow, tripletRow } from "./hinge.js";
import { softmaxRow } from "./softmax.js";

/**
 * Loss (n), weight (n), pair weights (n·w), gradients of each anchor's loss (n·w), effective negatives (n), active
 * pairs or triplets (n; of these `hard`, the rest semi-hard), and the value. Arrays of `into` are used again.
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
  for (let i = 0; i < n; i++) {
    const at = i * w;
    if (kernel.family === "softmax") softmaxRow(S, M, at, w, kernel, i, out);
    else if (kernel.form === "pair") pairRow(S, M, at, w, kernel, i, out);
    else tripletRow(S, M, at, w, kernel, i, out);
  }
  let total = 0,
    weight = 0,
    valid = 0;
  for (let i = 0; i < n; i++) {
    total += out.loss[i] * out.weight[i];
    weight += out.weight[i];
    if (out.weight[i] > 0) valid++;
  }
  out.value = weight > 0 ? total / weight : 0;
  out.valid = valid;
  return out;
}

/**
 * @param {number} n
 * @param {number} w
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
    pair: new Float32Array(n * w),
    grad: new Float32Array(n * w),
    sorted: new Array(n),
  };
}
