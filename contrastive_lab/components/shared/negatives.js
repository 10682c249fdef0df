// Control over negatives, one anchor at a time: false ones left out, hard ones weighed up, positives weighed or taken
// out of their denominator.

import { logAddExp } from "./softmax.js";

/**
 * The mask without the negatives that are more similar than the anchor's nearest positive by a margin, or than a
 * share of its similarity: they may be false. Their cells become 0 in `out.kept`, and `out.leftOut` counts them.
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
  const margin = kernel.negative_margin ?? null,
    share = kernel.positive_share ?? null;
  if (margin === null && share === null) return M;
  const sign = kernel.sign || 1,
    kept = (out.kept ||= new Uint8Array(n * w));
  kept.set(M);
  for (let i = 0, at = 0; i < n; i++, at += w) {
    let top = -Infinity;
    for (let k = at; k < at + w; k++) if (M[k] === 1) top = Math.max(top, sign * S[k]);
    if (top === -Infinity) continue;
    const limit = (share ?? 1) * top + (margin ?? 0);
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
 * @type {RowKernel}
 */
export function listedRow(S, M, at, w, kernel, i, out) {
  const scale = (kernel.sign || 1) / kernel.temperature,
    beta = kernel.negatives === "hard" ? kernel.beta : 0,
    sums = sumsOf(S, M, at, w, scale, beta),
    { positives, count, top } = sums;
  out.negatives[i] = out.active[i] = count;
  out.effective[i] = count ? Math.exp(Math.log(sums.negative) - sums.spread / sums.negative) : 0;
  out.weight[i] = positives && (count || kernel.positive !== "out") ? 1 : 0;
  out.loss[i] = 0;
  const lift = count / sums.flat, // a hard negative stands for more than one, the rest for less
    all = lift * sums.tilted,
    logAll = logAddExp(sums.logPositive, count ? top + Math.log(all) : -Infinity),
    share = lift * (positives ? Math.exp(top - logAll) : 1 / all);
  for (let k = at, j = 0; k < at + w; k++)
    if (M[k] === 2) out.pair[k] = tilts[j] * exponentials[j++] * share;
    else if (M[k] === 1) out.pair[k] = Math.exp(scale * S[k] - logAll);
  if (beta && count) out.effective[i] = countPushed(sums, count);
  if (!out.weight[i] || !count) return;
  const push = overPositives(S, M, at, w, kernel, i, sums, out);
  for (let k = at, j = 0; k < at + w; k++) {
    if (M[k] !== 2) continue;
    const tilt = tilts[j];
    out.grad[k] = scale * push * (((1 + beta) * tilt * exponentials[j++]) / sums.tilted - (beta * tilt) / sums.flat);
  }
}

/** The exponential of the entropy of the shares that negatives have of the push, where hard ones are weighed up. */
function countPushed({ beta, tilted, flat }, count) {
  let sum = 0,
    spread = 0;
  for (let j = 0; j < count; j++) {
    const push = Math.abs(tilts[j] * (((1 + beta) * exponentials[j]) / tilted - beta / flat));
    sum += push;
    if (push > 0) spread += push * Math.log(push);
  }
  return sum > 0 ? Math.exp(Math.log(sum) - spread / sum) : 0;
}

let exponentials = new Float64Array(0), // of an anchor's negatives, one after the other: e^(ℓ − top)
  tilts = new Float64Array(0); // e^(β(ℓ − top))

/** Sums over an anchor's positives and negatives, each power taken once. */
function sumsOf(S, M, at, w, scale, beta) {
  if (exponentials.length < w) [exponentials, tilts] = [new Float64Array(w), new Float64Array(w)];
  let top = -Infinity,
    logPositive = -Infinity,
    positives = 0;
  for (let k = at; k < at + w; k++)
    if (M[k] === 2) top = Math.max(top, scale * S[k]);
    else if (M[k] === 1) {
      positives++;
      logPositive = logAddExp(logPositive, scale * S[k]);
    }
  let count = 0,
    negative = 0,
    spread = 0,
    tilted = 0,
    flat = 0;
  for (let k = at; k < at + w; k++) {
    if (M[k] !== 2) continue;
    const l = scale * S[k] - top,
      e = Math.exp(l),
      tilt = beta === 1 ? e : beta ? Math.exp(beta * l) : 1;
    exponentials[count] = e;
    tilts[count++] = tilt;
    negative += e;
    if (e > 0) spread += e * l;
    tilted += tilt * e;
    flat += tilt;
  }
  return { positives, count, top, logPositive, negative, spread, tilted, flat, beta, scale };
}

/** Loss and gradients of the positives; returns Σ_p ∂L/∂(log of the mean of negatives) over their number. */
function overPositives(S, M, at, w, kernel, i, sums, out) {
  const { scale, beta, top, positives, count } = sums,
    apart = kernel.positive === "out",
    isHard = kernel.negatives === "hard",
    tilted = (1 + beta) * top + Math.log(sums.tilted),
    mean = tilted - beta * top - Math.log(sums.flat);
  let loss = 0,
    push = 0;
  for (let k = at; k < at + w; k++) {
    if (M[k] !== 1) continue;
    const l = scale * S[k],
      [log, ofNegatives, ofItself] = isHard ? estimate(kernel, count, mean, l) : [tilted, 1, 0],
      all = apart ? log : logAddExp(l, log),
      share = apart ? 1 : Math.exp(log - all),
      c = kernel.weighting === "von_mises" ? 2 - Math.exp(S[k] / kernel.sigma - kernel.log_mean) : 1;
    loss += all - c * l;
    push += share * ofNegatives;
    out.grad[k] = (scale * (share * ofItself + (apart ? 0 : 1 - share) - c)) / positives;
  }
  out.loss[i] = loss / positives;
  return push / positives;
}
