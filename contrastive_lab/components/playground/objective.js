// Losses on the rows of a batch, and their gradients. Softmax, hinge and VICReg's terms are those of the Loss Lab. Rows
// stand image by image: 2·i and 2·i + 1 are the views of image i.

import { throughUnit, unitRows } from "./network.js";
import { addProduct, matrix, turned } from "./product.js";
import { centered, deviationOf, dimensionsOf, termsOf } from "../shared/dimensions.js";
import { evaluate } from "../shared/kernels.js";

/**
 * @typedef {object} Answer
 * @property {number} value
 * @property {Float32Array} slope ∂value/∂rows, which were no unit rows
 * @property {number} matter negatives that matter, on average; NaN where there are none
 * @property {number[]} [same] share of the push that goes to samples of the anchor's class, and by chance; [] for none
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
    M = new Uint8Array(n * w),
    slope = new Float32Array(n * d);
  addProduct(matrix(Z, 0, d), turned(matrix(others, 0, d)), matrix(S, 0, w), [n, d, w]);
  for (let i = 0; i < n; i++)
    for (let j = 0; j < w; j++) {
      const at = i * w + j;
      if (!isDot) S[at] = 2 - 2 * S[at]; // of unit rows the squared distance
      const isPositive = keys ? i === j : i >> 1 === j >> 1 || (labels && labels[i] === labels[j]);
      M[at] = i === j && !keys ? 3 : isPositive ? 1 : keys && j < n ? 0 : 2;
    }
  if (into) into.sorted.fill(undefined); // of other rows
  const out = evaluate(S, M, n, w, kernel, into),
    total = out.weight.reduce((sum, one) => sum + one, 0) || 1,
    G = S.fill(0), // ∂value/∂cosines
    D = matrix(slope, 0, d);
  for (let at = 0; at < G.length; at++)
    G[at] = ((isDot ? 1 : -2) * out.weight[Math.floor(at / w)] * out.grad[at]) / total;
  addProduct(matrix(G, 0, w), matrix(others, 0, d), D, [n, w, d]);
  if (!keys) addProduct(turned(matrix(G, 0, w)), matrix(Z, 0, d), D, [w, n, d]);
  const matter = out.effective.reduce((sum, one) => sum + one, 0) / n;
  return { value: out.value, slope: throughUnit(Z, lengths, slope, d), matter, out };
}

/** Where the same coordinate of an image's other view stands. */
const acrossViews = (k, d) => k + (Math.floor(k / d) % 2 ? -d : d);

/**
 * VICReg on two views (Bardes et al. 2022); `knobs` as the library names them.
 *
 * @param {{ invariance: number, variance: number, covariance: number, deviation: number }} knobs
 * @param {Float32Array} Y (2·n·d)
 * @param {number} d
 * @returns {Answer}
 */
export function vicReg(knobs, Y, d) {
  const n = Y.length / d / 2,
    found = dimensionsOf(Y, n, d, "covariance"),
    slope = Y.map((y, k) => (2 * knobs.invariance * (y - Y[acrossViews(k, d)])) / (n * d));
  found.matrices.forEach((C, view) => {
    const rows = centered(Y, n, d, view);
    C.forEach((c, cell) => {
      const [j, k] = [Math.floor(cell / d), cell % d],
        deviation = deviationOf(c),
        onDiagonal = deviation < knobs.deviation ? -knobs.variance / (2 * d * deviation) : 0,
        factor = (j === k ? onDiagonal : (4 * knobs.covariance * c) / d) / (n - 1);
      for (let i = 0; i < n; i++) slope[(2 * i + view) * d + k] += factor * rows[i * d + j];
    });
  });
  return { value: termsOf(found, knobs).reduce((sum, { part }) => sum + part, 0), slope, matter: NaN };
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
    other = ({ Z }) => Z.map((_z, k) => -Z[acrossViews(k, d)] / n),
    [ofP, ofY] = [other(y), other(p)];
  return {
    value: p.Z.reduce((sum, z, k) => sum + z * ofP[k], 0),
    ofPredictions: throughUnit(p.Z, p.lengths, ofP, d),
    ofRows: throughUnit(y.Z, y.lengths, ofY, d),
  };
}
