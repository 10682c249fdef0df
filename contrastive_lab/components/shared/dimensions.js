// Losses over dimensions: the matrix (d·d) of a batch's two views, and the terms that it costs.
//
// Barlow Twins correlates the dimensions of one view with those of the other; VICReg has a covariance for each view.
// The matrices depend on the batch alone, so a knob that is dragged costs one pass over the diagonal. With more
// dimensions than images, sums over all cells come from the images' products: ‖AᵀB‖² = Σ (AAᵀ)∘(BBᵀ). Of many
// dimensions only those that vary most with others are kept as a matrix to look at; the terms count all. Formulas and
// constants are those of contrastive_core/losses; a test holds the values to the library's.

import { unitRows } from "../playground/network.js";
import { addProduct, matrix, turned } from "../playground/product.js";

export const MOST_SHOWN = 512; // dimensions of a matrix that is painted: more are smaller than pixels, and slow
const CORRELATION_EPS = 1e-5; // beside the variance, as in the library
const COVARIANCE_EPS = 1e-4;

/**
 * @typedef {object} Dimensions
 * @property {"correlation" | "covariance"} form
 * @property {number} n images
 * @property {number} d
 * @property {Int32Array} shown (s) the dimensions of the matrices: all, or those that vary most with others
 * @property {Float64Array[]} matrices (s·s): one correlation, or the covariance of each view
 * @property {Float64Array[]} diagonals (d) of the whole matrices
 * @property {number} off Σ of squares off the diagonal, over all matrices
 * @property {number} invariance mean over images and dimensions of (a − b)²
 */

/** @typedef {{ key: string, value: number, weight: number, part: number }} Term */

/**
 * Matrices and what else the terms need, of views (n·2·d).
 *
 * @param {Float32Array} Z
 * @param {number} n
 * @param {number} d
 * @param {"correlation" | "covariance"} form
 * @returns {Dimensions}
 */
export function dimensionsOf(Z, n, d, form) {
  const [a, b] = [0, 1].map((view) => centered(Z, n, d, view));
  let invariance = 0;
  for (let i = 0; i < n; i++)
    for (let j = 0; j < d; j++) invariance += (Z[2 * i * d + j] - Z[(2 * i + 1) * d + j]) ** 2;
  invariance /= n * d;
  const isCorrelation = form === "correlation",
    sides = isCorrelation
      ? [[scaled(a, n, d), scaled(b, n, d)]]
      : [
          [a, a],
          [b, b],
        ],
    scale = 1 / (isCorrelation ? n : Math.max(1, n - 1)),
    squares = sides.map(([left, right]) => squaresOf(left, right, n, d, scale)),
    diagonals = sides.map(([left, right]) => diagonalOf(left, right, n, d, scale));
  let off = 0;
  squares.forEach((rows, which) => {
    for (let j = 0; j < d; j++) off += rows[j] - diagonals[which][j] ** 2;
  });
  const shown = mostVarying(squares, diagonals, d),
    matrices = sides.map(([left, right]) => product(left, right, n, d, scale, shown));
  return { form, n, d, shown, matrices, diagonals, off: Math.max(0, off), invariance };
}

/**
 * The terms of a loss, each with its value, its weight and its part of the loss.
 *
 * @param {Dimensions} found
 * @param {Record<string, number>} knobs as the library names them
 * @returns {Term[]}
 */
export function termsOf(found, knobs) {
  const { form, d, diagonals, off, invariance } = found,
    term = (key, value, weight) => ({ key, value, weight, part: value * weight });
  let diagonal = 0;
  for (const values of diagonals) for (let j = 0; j < d; j++) diagonal += atDiagonal(form, values[j], knobs.deviation);
  if (form === "correlation") return [term("on", diagonal, 1), term("off", off, knobs.off_diagonal)];
  return [
    term("invariance", invariance, knobs.invariance),
    term("variance", diagonal / (2 * d), knobs.variance),
    term("covariance", off / d, knobs.covariance),
  ];
}

/**
 * What one cell of a matrix adds to the loss.
 *
 * @param {Dimensions} found
 * @param {Record<string, number>} knobs
 * @param {number} which matrix
 * @param {number} j row of the matrix
 * @param {number} k its column
 */
export function partOfCell(found, knobs, which, j, k) {
  const { form, d, shown, matrices } = found,
    value = matrices[which][j * shown.length + k];
  if (j !== k) return weightOff(found, knobs) * value * value;
  if (form === "correlation") return atDiagonal(form, value, 0);
  return (knobs.variance * atDiagonal(form, value, knobs.deviation)) / (2 * d);
}

/**
 * What the square of a value off the diagonal is multiplied by.
 *
 * @param {Dimensions} found
 * @param {Record<string, number>} knobs
 */
export function weightOff({ form, d }, knobs) {
  return form === "correlation" ? knobs.off_diagonal : knobs.covariance / d;
}

/**
 * A dimension's deviation, as the hinge has it.
 *
 * @param {number} variance
 */
export function deviationOf(variance) {
  return Math.sqrt(variance + COVARIANCE_EPS);
}

/**
 * Cosine similarities (m·m) of rows (m·d); 0 of a row of zeros.
 *
 * @param {Float32Array} Z
 * @param {number} m
 * @param {number} d
 */
export function cosines(Z, m, d) {
  const S = new Float32Array(m * m),
    unit = matrix(unitRows(Z, d).Z, 0, d);
  addProduct(unit, turned(unit), matrix(S, 0, m), [m, d, m]);
  return S;
}

function atDiagonal(form, value, least) {
  return form === "correlation" ? (1 - value) ** 2 : Math.max(0, least - deviationOf(value));
}

/**
 * One view's rows (n·d) less their mean.
 *
 * @param {Float32Array} Z
 * @param {number} n
 * @param {number} d
 * @param {number} view
 */
export function centered(Z, n, d, view) {
  const rows = new Float64Array(n * d);
  for (let j = 0; j < d; j++) {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += Z[(2 * i + view) * d + j];
    for (let i = 0; i < n; i++) rows[i * d + j] = Z[(2 * i + view) * d + j] - sum / n;
  }
  return rows;
}

/** Centered rows with variance 1 in each column. */
function scaled(rows, n, d) {
  const found = rows.slice();
  for (let j = 0; j < d; j++) {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += rows[i * d + j] ** 2;
    const scale = 1 / Math.sqrt(sum / n + CORRELATION_EPS);
    for (let i = 0; i < n; i++) found[i * d + j] *= scale;
  }
  return found;
}

/** scale · AᵀB (s·s) of some columns of both. */
function product(A, B, n, d, scale, shown) {
  const s = shown.length,
    found = new Float64Array(s * s);
  for (let i = 0; i < n; i++)
    for (let j = 0; j < s; j++) {
      const a = A[i * d + shown[j]] * scale;
      for (let k = 0; k < s; k++) found[j * s + k] += a * B[i * d + shown[k]];
    }
  return found;
}

/** The diagonal (d) of scale · AᵀB. */
function diagonalOf(A, B, n, d, scale) {
  const found = new Float64Array(d);
  for (let i = 0; i < n; i++) for (let j = 0; j < d; j++) found[j] += scale * A[i * d + j] * B[i * d + j];
  return found;
}

/** Squares of scale · AᵀB, summed over each row (d): scale² · a_jᵀ BBᵀ a_j for column a_j of A. */
function squaresOf(A, B, n, d, scale) {
  const G = new Float64Array(n * n), // BBᵀ
    row = new Float64Array(d),
    found = new Float64Array(d);
  for (let i = 0; i < n; i++)
    for (let l = 0; l <= i; l++) {
      let dot = 0;
      for (let k = 0; k < d; k++) dot += B[i * d + k] * B[l * d + k];
      G[i * n + l] = G[l * n + i] = dot;
    }
  for (let i = 0; i < n; i++) {
    row.fill(0); // row i of BBᵀA
    for (let l = 0; l < n; l++) {
      const g = G[i * n + l];
      for (let j = 0; j < d; j++) row[j] += g * A[l * d + j];
    }
    for (let j = 0; j < d; j++) found[j] += scale * scale * A[i * d + j] * row[j];
  }
  return found;
}

/** The dimensions (s) whose rows have the largest squares off the diagonal, in order; all where they are few. */
function mostVarying(squares, diagonals, d) {
  const all = Int32Array.from({ length: d }, (_, j) => j);
  if (d <= MOST_SHOWN) return all;
  const off = (j) => squares.reduce((sum, rows, which) => sum + rows[j] - diagonals[which][j] ** 2, 0),
    sums = Float64Array.from(all, off);
  return all
    .sort((j, k) => sums[k] - sums[j])
    .slice(0, MOST_SHOWN)
    .sort();
}
