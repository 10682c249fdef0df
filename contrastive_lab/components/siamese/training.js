// A training small enough to watch: an image is a few numbers, an encoder puts two views of each on the
// circle, and BYOL or SimSiam trains it, with or without predictor and stop-gradient. Everything is computed here.
//
// Encoder and predictor are networks with one hidden layer (tanh) whose two outputs are scaled to length 1. Each step
// draws new views, x + σ·n, and takes one gradient step on all images (Grill et al. 2020; Chen & He 2021). A test
// holds the weights to the same update by PyTorch.

import { backward, forward, network } from "./network.js";
import { generator } from "../shared/random.js";

export const IMAGES = 16;
export const INPUTS = 4;
export const HIDDEN = 16;
export const PREDICTOR_HIDDEN = 16;
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
    x = Float64Array.from({ length: IMAGES * INPUTS }, random.normal),
    encoder = network(INPUTS, HIDDEN, random),
    predictor = network(2, PREDICTOR_HIDDEN, random);
  const target = { ...encoder, w: encoder.w.slice() },
    shown = Float64Array.from({ length: 2 * IMAGES * INPUTS }, random.normal); // noise of the two views that are drawn
  return { random, x, encoder, predictor, target, shown, step: 0, loss: NaN };
}

/**
 * One step on all images; sets `loss`, that of the batch before the step.
 *
 * @param {any} t as begin gives it
 * @param {Settings} s
 */
export function advance(t, s) {
  const grads = { encoder: new Float64Array(t.encoder.w.length), predictor: new Float64Array(t.predictor.w.length) },
    scale = 1 / (2 * IMAGES); // −cosine, mean over images and both directions; BYOL's 2 − 2·cosine doubles it
  let cosines = 0;
  for (let i = 0; i < IMAGES; i++) cosines += ofImage(t, s, i, grads, scale);
  t.loss = -cosines / (2 * IMAGES);
  descend(t.encoder.w, grads.encoder, s.rate);
  if (s.predictor) descend(t.predictor.w, grads.predictor, s.predictorRate);
  for (let k = 0; k < t.target.w.length; k++)
    t.target.w[k] = s.momentum * t.target.w[k] + (1 - s.momentum) * t.encoder.w[k];
  t.step++;
}

/** Adds one image's gradients; returns the sum of the cosines of both directions. */
function ofImage(t, s, i, grads, scale) {
  const views = [0, 1].map(() => viewOf(t.x, i, t.random.normal)),
    online = views.map((view) => forward(t.encoder, view)),
    predicted = s.predictor ? online.map(({ z }) => forward(t.predictor, z)) : online,
    isOwn = !s.stopGradient || s.method === "simsiam",
    targets = isOwn ? online : views.map((view) => forward(t.target, view));
  const slopes = [0, 1].map(() => [0, 0]); // of the loss with respect to the encoder's rows
  let sum = 0;
  for (const v of [0, 1]) {
    const p = predicted[v].z,
      target = targets[1 - v].z;
    sum += p[0] * target[0] + p[1] * target[1];
    const slope = [-scale * target[0], -scale * target[1]],
      through = s.predictor ? backward(t.predictor, predicted[v], slope, grads.predictor) : slope;
    for (const k of [0, 1]) {
      slopes[v][k] += through[k];
      if (!s.stopGradient) slopes[1 - v][k] -= scale * p[k];
    }
  }
  for (const v of [0, 1]) backward(t.encoder, online[v], slopes[v], grads.encoder);
  return sum;
}

/** Image i with noise. */
function viewOf(x, i, noise) {
  const view = new Array(INPUTS);
  for (let k = 0; k < INPUTS; k++) view[k] = x[i * INPUTS + k] + NOISE * noise(k);
  return view;
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
export function places({ x, shown, encoder, predictor }) {
  const points = [];
  for (let i = 0; i < IMAGES; i++)
    for (const v of [0, 1]) {
      points.push(
        forward(
          encoder,
          viewOf(x, i, (k) => shown[(2 * i + v) * INPUTS + k]),
        ).z,
      );
    }
  return { points, predicted: points.map((z) => forward(predictor, z).z) };
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
