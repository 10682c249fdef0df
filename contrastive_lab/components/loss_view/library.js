// A loss that only the library computes.

import { make } from "../shared/kernels.js";

/**
 * What the library computed for a loss that has no kernel here: `pair`, `grad`, `loss` as bytes.
 *
 * @param {Uint8Array} M
 * @param {number} n
 * @param {number} w
 * @param {any} data undefined: nothing was computed
 * @param {any} meta
 */
export function library(M, n, w, data, meta) {
  if (!data) return null;
  const floats = (bytes) => new Float32Array(bytes.slice().buffer);
  const out = make(n, w);
  Object.assign(out, {
    pair: floats(data.pair),
    grad: floats(data.grad),
    loss: floats(data.loss),
    value: meta.loss,
    valid: meta.reason ? 0 : 1,
  });
  for (let i = 0; i < n; i++) {
    const at = i * w;
    let push = 0,
      entropy = 0;
    out.weight[i] = Number(M.subarray(at, at + w).includes(1));
    for (let k = at; k < at + w; k++)
      if (M[k] === 2) {
        out.negatives[i]++;
        push += Math.abs(out.grad[k]);
      }
    for (let k = at; k < at + w; k++) {
      const p = M[k] === 2 ? Math.abs(out.grad[k]) / (push || 1) : 0;
      if (p > 0) entropy -= p * Math.log(p);
    }
    out.effective[i] = push > 0 ? Math.exp(entropy) : 0;
  }
  return out;
}
