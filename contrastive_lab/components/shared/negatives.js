// Control over negatives, one anchor at a time: false ones left out, hard ones weighed up, positives weighed or taken
// out of their denominator.

import { logAddExp, softmaxRow } from "./softmax.js";

/**
 * The mask without the negatives that are more similar than the anchor's nearest positive by a margin: they may be
 * false. Their cells become 0 in `out.kept`, and `out.leftOut` counts them.
 *
 * @param {Scores} S
 * @param {Uint8Array} M
 * @param {number} n
 * @param {number} w
 * @param {Kernel} kernel
 * @param {KernelOutput} out
 */
export function keptNegatives(S, M, n, w, kernel, out) {
  out.leftOut.fill(0);
  if (kernel.negative_margin === null || kernel.negative_margin === undefined) return M;
  const sign = kernel.sign || 1,
    kept = (out.kept ||= new Uint8Array(n * w));
  kept.set(M);
  for (let i = 0, at = 0; i < n; i++, at += w) {
    let top = -Infinity;
    for (let k = at; k < at + w; k++) if (M[k] === 1) top = Math.max(top, sign * S[k]);
    if (top === -Infinity) continue;
    const limit = top + kernel.negative_margin;
    for (let k = at; k < at + w; k++)
      if (M[k] === 2 && sign * S[k] > limit) {
        kept[k] = 0;
        out.leftOut[i]++;
      }
  }
  return kept;
}

/**
 * log of the mean over all positive pairs of e^(s/σ), the measure of decoupled contrastive learning's weights.
 *
 * @param {Scores} S
 * @param {Uint8Array} M
 * @param {Kernel} kernel
 */
export function logMeanPositive(S, M, kernel) {
  let top = -Infinity,
    sum = 0,
    count = 0;
  for (let k = 0; k < S.length; k++) if (M[k] === 1) top = Math.max(top, S[k] / kernel.sigma);
  for (let k = 0; k < S.length; k++)
    if (M[k] === 1) {
      sum += Math.exp(S[k] / kernel.sigma - top);
      count++;
    }
  return top + Math.log(sum / count);
}

/**
 * log Σ e^(times · ℓ) over the anchor's negatives; −∞ without any.
 */
function logSumNegatives(S, M, at, w, scale, times) {
  let top = -Infinity,
    sum = 0;
  for (let k = at; k < at + w; k++) if (M[k] === 2) top = Math.max(top, times * scale * S[k]);
  for (let k = at; k < at + w; k++) if (M[k] === 2) sum += Math.exp(times * scale * S[k] - top);
  return sum ? top + Math.log(sum) : -Infinity;
}

/**
 * The logarithm of what stands for the negatives beside a positive with logit l, and its slopes: over the mean of
 * hard negatives, and over l.
 */
function estimate(kernel, count, hard, l) {
  const rate = kernel.tau_plus,
    top = Math.max(hard, l),
    left = Math.exp(hard - top) - rate * Math.exp(l - top),
    least = -1 / kernel.temperature,
    log = left > 0 ? top + Math.log(left) - Math.log1p(-rate) : -Infinity;
  if (!(log > least)) return [Math.log(count) + least, 0, 0];
  return [Math.log(count) + log, Math.exp(hard - top) / left, (-rate * Math.exp(l - top)) / left];
}

/**
 * One anchor whose positives stand one by one against its negatives: hard ones weighed up (Robinson et al.), or the
 * positive taken out of its denominator (decoupled).
 *
 * @param {Scores} S
 * @param {Uint8Array} M
 * @param {number} at
 * @param {number} w
 * @param {Kernel} kernel
 * @param {number} i
 * @param {KernelOutput} out
 */
export function listedRow(S, M, at, w, kernel, i, out) {
  softmaxRow(S, M, at, w, kernel, i, out); // weights on pairs, effective negatives
  const count = out.negatives[i],
    apart = kernel.positive === "out";
  for (let k = at; k < at + w; k++) out.grad[k] = 0;
  out.loss[i] = 0;
  if (apart && !count) out.weight[i] = 0;
  if (!out.weight[i] || !count) return;
  const scale = (kernel.sign || 1) / kernel.temperature,
    isHard = kernel.negatives === "hard",
    beta = isHard ? kernel.beta : 0,
    flat = isHard ? logSumNegatives(S, M, at, w, scale, beta) : 0,
    tilted = logSumNegatives(S, M, at, w, scale, 1 + beta);
  let positives = 0,
    loss = 0,
    push = 0; // Σ_p ∂L/∂(log of the mean of negatives)
  for (let k = at; k < at + w; k++) if (M[k] === 1) positives++;
  for (let k = at; k < at + w; k++) {
    if (M[k] !== 1) continue;
    const l = scale * S[k],
      [log, ofNegatives, ofItself] = isHard ? estimate(kernel, count, tilted - flat, l) : [tilted, 1, 0],
      all = apart ? log : logAddExp(l, log),
      share = apart ? 1 : Math.exp(log - all),
      c = kernel.weighting === "von_mises" ? 2 - Math.exp(S[k] / kernel.sigma - kernel.log_mean) : 1;
    loss += all - c * l;
    push += share * ofNegatives;
    out.grad[k] = (scale * (share * ofItself + (apart ? 0 : 1 - share) - c)) / positives;
  }
  for (let k = at; k < at + w; k++) {
    if (M[k] !== 2) continue;
    const l = scale * S[k];
    let slope = (1 + beta) * Math.exp((1 + beta) * l - tilted);
    if (beta) slope -= beta * Math.exp(beta * l - flat);
    out.grad[k] = (scale * push * slope) / positives;
  }
  out.loss[i] = loss / positives;
}
