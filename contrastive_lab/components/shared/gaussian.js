// LeJEPA's terms: how far the projections of a batch on random directions are from a standard normal distribution.
//
// SIGReg is the mean over M directions of the Epps-Pulley statistic of contrastive_core/losses/lejepa.py: the empirical
// characteristic function against e^(−t²/2), by the trapezoidal rule over 17 points in [0, 3]. Directions are drawn
// here, so that the mean differs from the library's as two draws do. A direction depends on its number alone: a larger
// M adds directions and keeps the others.

import { generator } from "./random.js";

const KNOTS = 17,
  END = 3;

/**
 * @typedef {object} Gaussian
 * @property {"gaussian"} form
 * @property {number} n images
 * @property {number} d
 * @property {Float64Array[]} views (n·d) each
 * @property {number} invariance mean over images and dimensions of (a − b)² / 4
 * @property {number[][]} statistics of each view, by the number of the direction; as many as were asked for so far
 */

/**
 * What the terms need, of views (n·2·d); its statistics are computed when they are asked for.
 *
 * @param {Float32Array} Z
 * @param {number} n
 * @param {number} d
 * @returns {Gaussian}
 */
export function gaussianOf(Z, n, d) {
  const views = [0, 1].map((view) =>
      Float64Array.from({ length: n * d }, (_, k) => Z[k + (Math.floor(k / d) + view) * d]),
    ),
    [a, b] = views;
  let invariance = 0;
  for (let k = 0; k < a.length; k++) invariance += (a[k] - b[k]) ** 2 / 4;
  return { form: "gaussian", n, d, views, invariance: invariance / (n * d), statistics: [[], []] };
}

/**
 * The unit direction (d) of a number.
 *
 * @param {number} number
 * @param {number} d
 */
export function directionOf(number, d) {
  const { normal } = generator(number),
    u = Float64Array.from({ length: d }, normal),
    length = Math.hypot(...u);
  return u.map((x) => x / length);
}

/**
 * A view's rows (n·d) on a direction: n numbers.
 *
 * @param {Float64Array} rows
 * @param {Float64Array} u
 */
export function projection(rows, u) {
  const d = u.length,
    x = new Float64Array(rows.length / d);
  for (let i = 0; i < x.length; i++) for (let j = 0; j < d; j++) x[i] += rows[i * d + j] * u[j];
  return x;
}

/**
 * n times the weighted distance of the characteristic function of x (n) from that of N(0, 1).
 *
 * @param {Float64Array} x
 */
export function statisticOf(x) {
  const n = x.length,
    step = END / (KNOTS - 1),
    real = new Float64Array(KNOTS),
    imaginary = new Float64Array(KNOTS);
  for (const value of x) {
    const c1 = Math.cos(step * value),
      s1 = Math.sin(step * value);
    let c = 1,
      s = 0; // of t · value, from one point t to the next by the sum of angles
    for (let i = 0; i < KNOTS; i++) {
      real[i] += c;
      imaginary[i] += s;
      [c, s] = [c * c1 - s * s1, s * c1 + c * s1];
    }
  }
  let sum = 0;
  for (let i = 0; i < KNOTS; i++) {
    const normal = Math.exp(-((i * step) ** 2) / 2),
      weight = i === 0 || i === KNOTS - 1 ? step : 2 * step;
    sum += weight * normal * ((real[i] / n - normal) ** 2 + (imaginary[i] / n) ** 2);
  }
  return n * sum;
}

/**
 * Compute statistics until there are `count` of each view, or time is up. Returns how many there are.
 *
 * @param {Gaussian} found
 * @param {number} count
 * @param {number} [milliseconds]
 */
export function extend(found, count, milliseconds = Infinity) {
  const { views, statistics, d } = found,
    end = performance.now() + milliseconds;
  while (statistics[0].length < count && performance.now() < end) {
    const u = directionOf(statistics[0].length, d);
    views.forEach((rows, view) => statistics[view].push(statisticOf(projection(rows, u))));
  }
  return Math.min(count, statistics[0].length);
}

/**
 * The terms of the loss over the first `count` directions, as those of dimensions.js.
 *
 * @param {Gaussian} found
 * @param {Record<string, number>} knobs as the library names them
 * @param {number} count directions whose statistics are there
 */
export function gaussianTerms({ invariance, statistics }, { trade_off: weight }, count) {
  let sum = 0;
  for (const values of statistics) for (let k = 0; k < count; k++) sum += values[k];
  const value = sum / (2 * count);
  return [
    { key: "distance", value: invariance, weight: 1 - weight, part: (1 - weight) * invariance },
    { key: "gaussian", value, weight, part: weight * value },
  ];
}

/**
 * The first `count` directions from the largest statistic to the smallest, of both views together.
 *
 * @param {Gaussian} found
 * @param {number} count
 */
export function ranked({ statistics: [a, b] }, count) {
  return Array.from({ length: count }, (_, k) => k).sort((k, l) => a[l] + b[l] - a[k] - b[k]);
}
