// Losses on the rows of a batch, and their gradients. Softmax and hinge come from the kernels of the Loss Lab; VICReg's
// terms and SimSiam's cosine are written here. Rows stand image by image: 2·i and 2·i + 1 are the views of image i.

import { unitRows, throughUnit } from "./network.js";
import { evaluate } from "../shared/kernels.js";

const DEVIATION = 1; // VICReg: its hinge on each dimension's deviation, and ε below the root
const EPS = 1e-4;

/**
 * @typedef {object} Answer
 * @property {number} value
 * @property {Float32Array} slope ∂value/∂rows, which were no unit rows
 * @property {number} matter negatives that matter, on average; NaN where there are none
 * @property {number} [same] share of the push that goes to images of the anchor's class; NaN where there is none
 */

/**
 * A loss that compares rows. `keys`: rows (m·d) of a slowly moving network, one for each anchor, and its queue, with
 * which each anchor is compared beside its own key; without them rows are compared with each other.
 *
 * @param {any} kernel
 * @param {Float32Array} Y (n·d)
 * @param {number} d
 * @param {{ labels?: ArrayLike<number>, keys?: Float32Array, into?: any }} [more] labels: of each row
 * @returns {Answer & { out: any }}
 */
export function compare(kernel, Y, d, { labels, keys, into } = {}) {
  const { Z, lengths } = unitRows(Y, d),
    n = lengths.length,
    others = keys ?? Z,
    w = others.length / d,
    isDot = kernel.family === "softmax",
    S = new Float32Array(n * w),
    M = new Uint8Array(n * w);
  for (let i = 0; i < n; i++)
    for (let j = 0; j < w; j++) {
      let dot = 0;
      for (let k = 0; k < d; k++) dot += Z[i * d + k] * others[j * d + k];
      S[i * w + j] = isDot ? dot : 2 - 2 * dot; // of unit rows the squared distance
      M[i * w + j] = keys ? (j >= n ? 2 : Number(i === j)) : relation(i, j, labels);
    }
  if (into) into.sorted.fill(undefined); // of other rows
  const out = evaluate(S, M, n, w, kernel, into),
    slope = new Float32Array(n * d),
    total = out.weight.reduce((sum, one) => sum + one, 0) || 1;
  for (let i = 0; i < n; i++) {
    const share = ((isDot ? 1 : -2) * out.weight[i]) / total;
    if (!share) continue;
    for (let j = 0; j < w; j++) {
      const g = share * out.grad[i * w + j];
      if (!g) continue;
      for (let k = 0; k < d; k++) {
        slope[i * d + k] += g * others[j * d + k];
        if (!keys) slope[j * d + k] += g * Z[i * d + k];
      }
    }
  }
  const matter = out.effective.reduce((sum, one) => sum + one, 0) / n;
  return { value: out.value, slope: throughUnit(Z, lengths, slope, d), matter, out };
}

function relation(i, j, labels) {
  if (i === j) return 3;
  return i >> 1 === j >> 1 || (labels && labels[i] === labels[j]) ? 1 : 2;
}

/**
 * VICReg on two views: λ·invariance + μ·variance + ν·covariance (Bardes et al. 2022).
 *
 * @param {{ invariance: number, variance: number, covariance: number }} weights
 * @param {Float32Array} Y (2·n·d)
 * @param {number} d
 * @returns {Answer}
 */
export function vicReg(weights, Y, d) {
  const n = Y.length / d / 2,
    slope = new Float32Array(Y.length);
  let value = 0;
  for (let i = 0; i < n; i++)
    for (let k = 0; k < d; k++) {
      const p = 2 * i * d + k,
        gap = Y[p] - Y[p + d],
        g = (2 * weights.invariance * gap) / (n * d);
      value += (weights.invariance * gap * gap) / (n * d);
      slope[p] += g;
      slope[p + d] -= g;
    }
  for (const view of [0, 1]) value += spread(weights, Y, d, n, view, slope);
  return { value, slope, matter: NaN };
}

/** Variance and covariance of one view; adds their gradient. */
function spread(weights, Y, d, n, view, slope) {
  const at = (i, k) => (2 * i + view) * d + k,
    centered = new Float64Array(n * d),
    C = new Float64Array(d * d);
  for (let k = 0; k < d; k++) {
    let mean = 0;
    for (let i = 0; i < n; i++) mean += Y[at(i, k)] / n;
    for (let i = 0; i < n; i++) centered[i * d + k] = Y[at(i, k)] - mean;
  }
  for (let i = 0; i < n; i++)
    for (let j = 0; j < d; j++)
      for (let k = 0; k < d; k++) C[j * d + k] += (centered[i * d + j] * centered[i * d + k]) / (n - 1);
  let value = 0;
  const factors = new Float64Array(d * d); // ∂value/∂C, both halves
  for (let j = 0; j < d; j++)
    for (let k = 0; k < d; k++) {
      const c = C[j * d + k];
      if (j !== k) {
        value += (weights.covariance * c * c) / d;
        factors[j * d + k] = (2 * weights.covariance * c) / d;
        continue;
      }
      const deviation = Math.sqrt(c + EPS);
      if (deviation >= DEVIATION) continue;
      value += (weights.variance * (DEVIATION - deviation)) / (2 * d);
      factors[j * d + j] = -weights.variance / (4 * d * deviation);
    }
  for (let i = 0; i < n; i++)
    for (let k = 0; k < d; k++) {
      let g = 0;
      for (let j = 0; j < d; j++) g += 2 * factors[j * d + k] * centered[i * d + j];
      slope[at(i, k)] += g / (n - 1);
    }
  return value;
}

/**
 * Minus the cosine of predictions and the rows of the other view (Chen & He 2021), and its gradients with respect to
 * both.
 *
 * @param {Float32Array} P (2·n·d) predictions
 * @param {Float32Array} Y (2·n·d) rows
 * @param {number} d
 */
export function crossCosine(P, Y, d) {
  const p = unitRows(P, d),
    y = unitRows(Y, d),
    n = p.lengths.length,
    ofP = new Float32Array(P.length),
    ofY = new Float32Array(Y.length);
  let value = 0;
  for (let i = 0; i < n; i++)
    for (let k = 0; k < d; k++) {
      const own = i * d + k,
        other = (i ^ 1) * d + k;
      value -= (p.Z[own] * y.Z[other]) / n;
      ofP[own] = -y.Z[other] / n;
      ofY[other] = -p.Z[own] / n;
    }
  return {
    value,
    ofPredictions: throughUnit(p.Z, p.lengths, ofP, d),
    ofRows: throughUnit(y.Z, y.lengths, ofY, d),
  };
}
