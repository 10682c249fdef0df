// Losses over dimensions: the matrix (d·d) of a batch's two views, and the terms that it costs.
//
// Barlow Twins correlates the dimensions of one view with those of the other; VICReg has a covariance for each view.
// The matrices depend on the batch alone, so a knob that is dragged costs one pass over the diagonal. Formulas and
// constants are those of contrastive_core/losses; a test holds the values to the library's.

const CORRELATION_EPS = 1e-5; // beside the variance, as in the library
const COVARIANCE_EPS = 1e-4;

/**
 * @typedef {object} Dimensions
 * @property {"correlation" | "covariance"} form
 * @property {number} n images
 * @property {number} d
 * @property {Float64Array[]} matrices (d·d): one correlation, or the covariance of each view
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
  const matrices =
    form === "correlation"
      ? [product(scaled(a, n, d), scaled(b, n, d), n, d, 1 / n)]
      : [a, b].map((rows) => product(rows, rows, n, d, 1 / Math.max(1, n - 1)));
  const off = matrices.reduce((sum, matrix) => sum + squaresOff(matrix, d), 0);
  return { form, n, d, matrices, off, invariance };
}

/**
 * The terms of a loss, each with its value, its weight and its part of the loss.
 *
 * @param {Dimensions} found
 * @param {Record<string, number>} knobs as the library names them
 * @returns {Term[]}
 */
export function termsOf(found, knobs) {
  const { form, d, matrices, off, invariance } = found,
    term = (key, value, weight) => ({ key, value, weight, part: value * weight });
  let diagonal = 0;
  for (const matrix of matrices)
    for (let j = 0; j < d; j++) diagonal += atDiagonal(form, matrix[j * d + j], knobs.deviation);
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
 * @param {number} j
 * @param {number} k
 */
export function partOfCell(found, knobs, which, j, k) {
  const { form, d, matrices } = found,
    value = matrices[which][j * d + k];
  if (form === "correlation") return j === k ? atDiagonal(form, value, 0) : knobs.off_diagonal * value * value;
  if (j === k) return (knobs.variance * atDiagonal(form, value, knobs.deviation)) / (2 * d);
  return (knobs.covariance * value * value) / d;
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
  const unit = Float32Array.from(Z),
    S = new Float32Array(m * m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = 0; j < d; j++) sum += Z[i * d + j] ** 2;
    for (let j = 0; j < d; j++) unit[i * d + j] = sum > 0 ? Z[i * d + j] / Math.sqrt(sum) : 0;
  }
  for (let i = 0; i < m; i++)
    for (let k = 0; k <= i; k++) {
      let dot = 0;
      for (let j = 0; j < d; j++) dot += unit[i * d + j] * unit[k * d + j];
      S[i * m + k] = S[k * m + i] = dot;
    }
  return S;
}

function atDiagonal(form, value, least) {
  return form === "correlation" ? (1 - value) ** 2 : Math.max(0, least - deviationOf(value));
}

/** One view's rows (n·d) less their mean. */
function centered(Z, n, d, view) {
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

/** scale · AᵀB (d·d). */
function product(A, B, n, d, scale) {
  const found = new Float64Array(d * d);
  for (let i = 0; i < n; i++)
    for (let j = 0; j < d; j++) {
      const a = A[i * d + j] * scale;
      for (let k = 0; k < d; k++) found[j * d + k] += a * B[i * d + k];
    }
  return found;
}

function squaresOff(matrix, d) {
  let sum = 0;
  for (let j = 0; j < d; j++) for (let k = 0; k < d; k++) if (j !== k) sum += matrix[j * d + k] ** 2;
  return sum;
}
