// A training small enough to watch: an image is a few numbers, an encoder puts two views of each on the
// circle, and BYOL or SimSiam trains it, with or without predictor and stop-gradient. Everything is computed here.
//
// Encoder and predictor are networks of the playground with one hidden layer and two outputs, of which the direction
// counts. Each step draws new views, x + σ·n, and takes one gradient step on all images (Grill et al. 2020; Chen & He
// 2021). A test holds the weights to the same update by PyTorch.

import { backward, forward, network, unitRows } from "../playground/network.js";
import { crossCosine } from "../playground/objective.js";
import { generator } from "../shared/random.js";

export const IMAGES = 16;
export const INPUTS = 4;
export const HIDDEN = 16;
export const PREDICTOR_HIDDEN = 16;
const ROWS = 2 * IMAGES;
export const NOISE = 0.5; // σ of a view
export const COLLAPSED = 0.1; // spread below which all points count as one

/**
 * @typedef {object} Settings
 * @property {"simsiam" | "byol"} method BYOL's targets come from a moving average of the encoder
 * @property {boolean} predictor
 * @property {boolean} stopGradient without it, targets are the encoder's own rows, in BYOL too
 * @property {number} rate of the encoder
 * @property {number} predictorRate
 * @property {number} momentum m, of BYOL's moving average
 */

/**
 * A training at its start.
 *
 * @param {number} seed
 */
export function begin(seed) {
  const random = generator(seed),
    drawn = (rows) => Float32Array.from({ length: rows * INPUTS }, random.normal),
    x = drawn(IMAGES),
    encoder = network([INPUTS, HIDDEN, 2], random),
    predictor = network([2, PREDICTOR_HIDDEN, 2], random);
  const target = { ...encoder, w: encoder.w.slice() },
    shown = viewsOf(x, drawn(ROWS)); // the two views that are drawn
  return { random, x, encoder, predictor, target, shown, step: 0, loss: NaN };
}

/**
 * One step on all images; sets `loss`, that of the batch before the step.
 *
 * @param {any} t as begin gives it
 * @param {Settings} s
 */
export function advance(t, s) {
  const views = viewsOf(t.x, Float32Array.from({ length: ROWS * INPUTS }, t.random.normal)),
    online = forward(t.encoder, views, ROWS),
    rows = online.at(-1),
    predicted = s.predictor ? forward(t.predictor, rows, ROWS) : [rows],
    isOwn = !s.stopGradient || s.method === "simsiam",
    targets = isOwn ? rows : forward(t.target, views, ROWS).at(-1),
    // −cosine, mean over images and both directions; BYOL's 2 − 2·cosine doubles it
    { value, ofPredictions, ofRows } = crossCosine(predicted.at(-1), targets, 2),
    through = s.predictor && backward(t.predictor, predicted, ofPredictions, ROWS, true),
    slope = through ? through.slope : ofPredictions;
  if (!s.stopGradient) for (let k = 0; k < slope.length; k++) slope[k] += ofRows[k];
  descend(t.encoder.w, backward(t.encoder, online, slope, ROWS).gradient, s.rate);
  if (through) descend(t.predictor.w, through.gradient, s.predictorRate);
  for (let k = 0; k < t.target.w.length; k++)
    t.target.w[k] = s.momentum * t.target.w[k] + (1 - s.momentum) * t.encoder.w[k];
  t.loss = value;
  t.step++;
}

/** Two views of each image, image by image: it with noise. */
function viewsOf(x, noise) {
  return noise.map((v, k) => x[(k >> 3) * INPUTS + (k % INPUTS)] + NOISE * v);
}

function descend(w, gradient, rate) {
  for (let k = 0; k < w.length; k++) w[k] -= rate * gradient[k];
}

/**
 * Where the encoder puts both views (2·images) of every image, image by image, and what the predictor makes of them.
 *
 * @param {any} t
 * @returns {{ points: number[][], predicted: number[][] }}
 */
export function places({ shown, encoder, predictor }) {
  const rows = forward(encoder, shown, ROWS).at(-1),
    [points, predicted] = [rows, forward(predictor, rows, ROWS).at(-1)].map((Y) => {
      const { Z } = unitRows(Y, 2);
      return Array.from({ length: ROWS }, (_, i) => [Z[2 * i], Z[2 * i + 1]]);
    });
  return { points, predicted };
}

/**
 * How far points of the circle are spread: the mean deviation of both coordinates, times √2 (1: evenly around, 0: one
 * point), and the length of their mean (0: evenly, 1: one point).
 *
 * @param {number[][]} points
 */
export function spreadOf(points) {
  const n = points.length,
    mean = [0, 1].map((k) => points.reduce((sum, z) => sum + z[k] / n, 0)),
    deviation = [0, 1].map((k) => Math.sqrt(points.reduce((sum, z) => sum + (z[k] - mean[k]) ** 2 / n, 0)));
  return { spread: (deviation[0] + deviation[1]) / Math.SQRT2, resultant: Math.hypot(mean[0], mean[1]) };
}
