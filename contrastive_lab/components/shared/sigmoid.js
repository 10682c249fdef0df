// One anchor of SigLIP, where each pair is judged on its own, and of robust InfoNCE.

import { logAddExp, softmaxRow } from "./softmax.js";

/** log(1 + e^x). */
function softplus(x) {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}

/**
 * @param {Scores} S
 * @param {Uint8Array} M
 * @param {number} at
 * @param {number} w
 * @param {Kernel} kernel
 * @param {number} i
 * @param {KernelOutput} out
 */
export function sigmoidRow(S, M, at, w, kernel, i, out) {
  const scale = (kernel.sign || 1) / kernel.temperature;
  let loss = 0,
    count = 0,
    negatives = 0,
    top = -Infinity;
  for (let k = at; k < at + w; k++) {
    const m = M[k];
    if (m !== 1 && m !== 2) continue;
    const y = m === 1 ? -1 : 1,
      x = y * (scale * S[k] + kernel.bias),
      p = 1 / (1 + Math.exp(-x));
    count++;
    loss += softplus(x);
    out.pair[k] = p;
    out.grad[k] = y * scale * p;
    if (m === 1) continue;
    negatives++;
    top = Math.max(top, scale * S[k]);
  }
  out.loss[i] = loss;
  out.weight[i] = count ? 1 : 0;
  out.negatives[i] = out.active[i] = negatives;
  out.effective[i] = negatives ? effectiveNegatives(S, M, at, w, scale, top) : 0;
}

/** The exponential of the entropy of the softmax over negatives, as the other losses count them. */
function effectiveNegatives(S, M, at, w, scale, top) {
  let sum = 0,
    spread = 0;
  for (let k = at; k < at + w; k++) {
    if (M[k] !== 2) continue;
    const l = scale * S[k] - top,
      e = Math.exp(l);
    sum += e;
    if (e > 0) spread += e * l;
  }
  return Math.exp(Math.log(sum) - spread / sum);
}

/**
 * @param {Scores} S
 * @param {Uint8Array} M
 * @param {number} at
 * @param {number} w
 * @param {Kernel} kernel
 * @param {number} i
 * @param {KernelOutput} out
 */
export function robustRow(S, M, at, w, kernel, i, out) {
  softmaxRow(S, M, at, w, kernel, i, out); // weights on pairs, effective negatives
  if (!out.weight[i]) return;
  const scale = (kernel.sign || 1) / kernel.temperature,
    { q } = kernel,
    density = q * Math.log(kernel.density_weight);
  let top = -Infinity,
    sum = 0,
    positives = 0,
    loss = 0,
    push = 0; // Σ_p λ^q e^(q a − a + top), a: log of all that stands beside p
  for (let k = at; k < at + w; k++) {
    if (M[k] === 2) top = Math.max(top, scale * S[k]);
    else if (M[k] === 1) positives++;
  }
  for (let k = at; k < at + w; k++) if (M[k] === 2) sum += Math.exp(scale * S[k] - top);
  const negatives = sum ? top + Math.log(sum) : -Infinity;
  for (let k = at; k < at + w; k++) {
    if (M[k] !== 1) continue;
    const l = scale * S[k],
      all = logAddExp(l, negatives),
      near = Math.exp(q * l),
      beside = Math.exp(density + q * all);
    loss += (beside - near) / q;
    if (sum) push += Math.exp(density + q * all - all + top);
    out.grad[k] = (scale * (beside * Math.exp(l - all) - near)) / positives;
  }
  for (let k = at; k < at + w; k++)
    if (M[k] === 2) out.grad[k] = (scale * push * Math.exp(scale * S[k] - top)) / positives;
  out.loss[i] = loss / positives;
}
