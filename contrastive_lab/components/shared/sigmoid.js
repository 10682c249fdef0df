// One anchor of SigLIP, where each pair is judged on its own, and of robust InfoNCE.

import { logAddExp, softmaxRow } from "./softmax.js";

const LARGE = 36, // beyond it log(1 + e^x) is x
  FAR = 600, // beyond it e^x is no number to sum
  FULL = 1e200; // of a product, whose logarithm is taken then

/** @type {RowKernel} */
export function sigmoidRow(S, M, at, w, kernel, i, out) {
  const scale = (kernel.sign || 1) / kernel.temperature,
    { bias } = kernel;
  let loss = 0,
    product = 1, // of all 1 + e^x, so that few logarithms are taken
    count = 0,
    negatives = 0,
    sum = 0, // Σ p over negatives, and Σ p log p
    spread = 0;
  for (let k = at; k < at + w; k++) {
    const m = M[k];
    if (m !== 1 && m !== 2) continue;
    const y = m === 1 ? -1 : 1,
      x = y * (scale * S[k] + bias),
      e = Math.exp(Math.min(FAR, x)),
      p = e / (1 + e);
    count++;
    if (x > LARGE) loss += x;
    else if ((product *= 1 + e) > FULL) {
      loss += Math.log(product);
      product = 1;
    }
    out.pair[k] = p;
    out.grad[k] = y * scale * p;
    if (m === 1) continue;
    negatives++;
    sum += p;
    spread += p * (x - (x > LARGE ? x : Math.log1p(e)));
  }
  out.loss[i] = loss + Math.log(product);
  out.weight[i] = count ? 1 : 0;
  out.negatives[i] = out.active[i] = negatives;
  out.effective[i] = !negatives
    ? 0
    : sum > 1e-250 // else no sum of powers is exact
      ? Math.exp(Math.log(sum) - spread / sum)
      : effectiveNegatives(S, M, at, w, scale);
}

/** The same where every push is tiny: then they are shared as a softmax over negatives shares them. */
function effectiveNegatives(S, M, at, w, scale) {
  let sum = 0,
    spread = 0,
    top = -Infinity;
  for (let k = at; k < at + w; k++) if (M[k] === 2) top = Math.max(top, scale * S[k]);
  for (let k = at; k < at + w; k++) {
    if (M[k] !== 2) continue;
    const l = scale * S[k] - top,
      e = Math.exp(l);
    sum += e;
    if (e > 0) spread += e * l;
  }
  return Math.exp(Math.log(sum) - spread / sum);
}

/** @type {RowKernel} */
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
