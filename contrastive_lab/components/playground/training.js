// A training that runs in the browser: a network puts small images on a sphere, of three or of many dimensions, and
// learns from views of them.

import { adam, backward, descend, forward, network, unitRows } from "./network.js";
import { compare, crossCosine, vicReg } from "./objective.js";
import { addProduct, matrix, turned } from "./product.js";
import { drawView } from "./views.js";
import { cosines } from "../shared/dimensions.js";
import { generator } from "../shared/random.js";

const HIDDEN = [256, 128],
  PREDICTOR = 64,
  QUEUE = 512, // keys
  MOMENTUM = 0.99, // of the network that makes them
  VICREG = { invariance: 25, variance: 25, covariance: 1, deviation: 1 },
  NEIGHBORS = 15, // that vote
  SAMPLE = 400, // rows of which alignment and uniformity are taken
  SHOWN = 3, // dimensions of a picture
  ROUNDS = 5; // of the search for its directions, at each look

/** @import { Answer } from "./objective.js" */
/** @import { Setting } from "./setting.js" */

/**
 * @typedef {object} Data
 * @property {Float32Array} images (n·height·width) from 0 to 1
 * @property {Int16Array | null} labels (n)
 * @property {number[]} shape height and width
 * @property {number} learned how many of them are learned from; the rest is held out
 * @property {Float32Array} mean (height·width) of these: the network gets what an image has more or less than it
 * @property {Record<string, any>} kernels of the losses that compare rows
 */

/**
 * @param {Data} data
 * @param {number} seed
 * @param {Setting} setting
 */
export function begin(data, seed, setting) {
  const random = generator(seed),
    { images, mean } = data,
    d = setting.dimensions,
    net = network([mean.length, ...HIDDEN, d], random),
    predictor = network([d, PREDICTOR, d], random);
  return {
    data,
    inputs: images.map((value, k) => value - mean[k % mean.length]),
    d,
    axes: Float32Array.from({ length: SHOWN * d }, (_, k) => Number(k % (d + 1) === 0)),
    net,
    predictor,
    slow: { ...net, w: net.w.slice() },
    queue: new Float32Array(0),
    moments: [adam(net), adam(predictor)],
    random: generator(seed + 1), // of batches and views, apart from the weights
    setting, // of the last step
    step: 0,
    loss: NaN,
    matter: NaN,
    same: [],
    out: /** @type {any} */ (null), // the kernel's arrays, used again while a batch has the same size
    good: net.w.slice(),
  };
}

/**
 * One step; returns false where the loss is no number: then the weights are those of the last good one.
 *
 * @param {ReturnType<typeof begin>} t
 * @param {Setting} setting
 */
export function advance(t, setting) {
  const batch = drawBatch(t, setting),
    rows = forward(t.net, batch.X, batch.n),
    { value, slope, matter, same = [], out = t.out } = objective(t, setting, rows.at(-1), batch);
  if (!Number.isFinite(value) || !slope.every(Number.isFinite)) {
    t.net.w.set(t.good);
    t.moments = [adam(t.net), adam(t.predictor)];
    return false;
  }
  if (t.step % 20 === 0) t.good.set(t.net.w);
  descend(t.net, t.moments[0], backward(t.net, rows, slope, batch.n).gradient, setting.rate);
  for (let k = 0; k < t.slow.w.length; k++) t.slow.w[k] = MOMENTUM * t.slow.w[k] + (1 - MOMENTUM) * t.net.w[k];
  Object.assign(t, { loss: value, matter, same, out, setting: { ...setting }, step: t.step + 1 });
  return true;
}

/** Two views of each of some images, image by image, less the mean. */
function drawBatch({ data, random }, setting) {
  const { images, labels, shape, learned, mean } = data,
    size = mean.length,
    count = Math.min(setting.batch, learned),
    X = new Float32Array(2 * count * size),
    of = labels && new Int16Array(2 * count),
    order = Int32Array.from({ length: learned }, (_, i) => i);
  for (let i = 0; i < count; i++) {
    const j = i + Math.floor(random.uniform() * (learned - i));
    [order[i], order[j]] = [order[j], order[i]];
    const image = images.subarray(order[i] * size, (order[i] + 1) * size);
    for (const view of [2 * i, 2 * i + 1]) {
      drawView(image, shape, setting, random, X, view * size);
      if (of) of[view] = labels[order[i]];
    }
  }
  for (let k = 0; k < X.length; k++) X[k] -= mean[k % size];
  return { X, n: 2 * count, labels: of };
}

/** @returns {Answer & { out?: any }} */
function objective(t, { loss, temperature, margin, stopGradient, rate }, Y, batch) {
  const kernel = { ...t.data.kernels[loss], temperature, margin };
  if (loss === "vicreg") return vicReg(VICREG, Y, t.d);
  if (loss === "simsiam") return predicted(t, stopGradient, rate, Y, batch.n);
  if (loss === "info_nce") return queued(t, kernel, Y, batch);
  if (loss !== "nt_xent") return compare(kernel, Y, t.d, { labels: batch.labels, into: t.out });
  const answer = compare(kernel, Y, t.d, { into: t.out });
  return batch.labels ? { ...answer, same: pushOnOwnClass(answer.out, batch.labels) } : answer;
}

/** The share of the push that goes to samples of the anchor's class, over all anchors, and their share of all pairs. */
function pushOnOwnClass({ pair, n, w }, labels) {
  let [own, all, peers, others] = [0, 0, 0, 0];
  for (let i = 0; i < n; i++)
    for (let j = 0; j < w; j++) {
      if (i >> 1 === j >> 1) continue;
      const isPeer = Number(labels[i] === labels[j]);
      others++;
      peers += isPeer;
      all += pair[i * w + j];
      own += isPeer * pair[i * w + j];
    }
  return [own / all, peers / others];
}

/** SimSiam: predictions of a view are compared with the other's rows, less their mean, as its batch norm has them. */
function predicted(t, stopGradient, rate, outputs, n) {
  const Y = centered(outputs, t.d),
    rows = forward(t.predictor, Y, n),
    { value, ofPredictions, ofRows } = crossCosine(rows.at(-1), Y, t.d),
    { gradient, slope } = backward(t.predictor, rows, ofPredictions, n, true);
  if (!stopGradient) for (let k = 0; k < slope.length; k++) slope[k] += ofRows[k];
  if (Number.isFinite(value)) descend(t.predictor, t.moments[1], gradient, rate);
  return { value, slope: centered(slope, t.d), matter: NaN };
}

/** First views against their second ones and earlier keys, all of which a slowly moving network has made. */
function queued(t, kernel, Y, { X, n }) {
  const { d, slow, queue } = t,
    views = (rows, width, which) => rows.filter((_v, k) => Math.floor(k / width) % 2 === which),
    own = unitRows(forward(slow, views(X, X.length / n, 1), n / 2).at(-1), d).Z,
    keys = new Float32Array(own.length + queue.length),
    slope = new Float32Array(Y.length);
  keys.set(own);
  keys.set(queue, own.length);
  t.queue = keys.slice(0, QUEUE * d);
  const answer = compare(kernel, views(Y, d, 0), d, { keys, into: t.out });
  answer.slope.forEach((g, k) => (slope[k + Math.floor(k / d) * d] = g));
  return { ...answer, slope };
}

/** Unit rows (n·d) of inputs: of all images as they are. */
export function embed({ net, inputs, d, setting }, X = inputs) {
  const Y = forward(net, X, X.length / net.sizes[0]).at(-1);
  return unitRows(setting.loss === "simsiam" ? centered(Y, d) : Y, d).Z;
}

/** Rows (n·d) less their mean. */
function centered(Y, d) {
  const mean = meanOf(Y, d, Y.length / d);
  return Y.map((y, k) => y - mean[k % d]);
}

/** Rows Z (n·d) as a picture has them (n·3): on the directions that hold most of them, from those of the last look. */
export function project(t, Z) {
  const { d } = t,
    n = Z.length / d,
    [rows, C, P] = [matrix(Z, 0, d), matrix(new Float32Array(d * d), 0, d), new Float32Array(SHOWN * n)];
  if (d === SHOWN) return Z;
  addProduct(turned(rows), rows, C, [d, n, d]);
  for (let round = 0; round < ROUNDS; round++) {
    const next = new Float32Array(SHOWN * d);
    addProduct(matrix(t.axes, 0, d), C, matrix(next, 0, d), [SHOWN, d, d]);
    t.axes = orthonormal(next, d);
  }
  addProduct(rows, turned(matrix(t.axes, 0, d)), matrix(P, 0, SHOWN), [n, d, SHOWN]);
  return P;
}

/** Each row less what is along those before it, of length 1. */
function orthonormal(A, d) {
  for (let i = 0; i < A.length; i += d) {
    for (let j = 0; j < i; j += d) {
      const along = A.subarray(i, i + d).reduce((sum, v, k) => sum + v * A[j + k], 0);
      for (let k = 0; k < d; k++) A[i + k] -= along * A[j + k];
    }
    A.set(unitRows(A.subarray(i, i + d), d).Z, i);
  }
  return A;
}

/** The mean (size) of the images that are learned from. */
export function meanOf(images, size, learned) {
  const mean = new Float32Array(size);
  for (let k = 0; k < learned * size; k++) mean[k % size] += images[k] / learned;
  return mean;
}

/**
 * kNN accuracy on the images that are held out, by a vote of their nearest learned ones; NaN without labels.
 *
 * @param {Float32Array} Z (n·d) unit rows
 * @param {Data} data
 */
export function accuracy(Z, { labels, learned }) {
  if (!labels) return NaN;
  const n = labels.length,
    d = Z.length / n,
    S = new Float32Array((n - learned) * learned),
    near = new Float64Array(NEIGHBORS),
    classes = new Int16Array(NEIGHBORS),
    votes = new Int32Array(1 + Math.max(...labels));
  addProduct(matrix(Z, learned * d, d), turned(matrix(Z, 0, d)), matrix(S, 0, learned), [n - learned, d, learned]);
  let right = 0;
  for (let i = learned; i < n; i++) {
    near.fill(-Infinity);
    for (let j = 0; j < learned; j++) {
      const s = S[(i - learned) * learned + j];
      let at = NEIGHBORS;
      for (; at > 0 && near[at - 1] < s; at--);
      if (at === NEIGHBORS) continue;
      near.copyWithin(at + 1, at);
      classes.copyWithin(at + 1, at);
      [near[at], classes[at]] = [s, labels[j]];
    }
    votes.fill(0);
    for (let k = 0; k < Math.min(NEIGHBORS, learned); k++) votes[classes[k]]++;
    right += Number(votes.indexOf(Math.max(...votes)) === labels[i]);
  }
  return right / (n - learned);
}

/**
 * Alignment: mean squared distance of two views. Uniformity: log mean exp(−2 d²) of some rows. And a few views to look
 * at, less the mean, image by image. Their random numbers are not those of the training.
 *
 * @param {ReturnType<typeof begin>} t
 * @param {Setting} setting
 * @param {number} shown images whose views are given
 */
export function look(t, setting, shown) {
  const { data, d } = t,
    { X, n } = drawBatch({ data, random: generator(t.step) }, { ...setting, batch: SAMPLE / 2 }),
    S = cosines(embed(t, X), n, d),
    distance = (i, j) => 2 - 2 * S[i * n + j];
  let [alignment, spread, pairs] = [0, 0, 0];
  for (let i = 0; i < n; i += 2) {
    alignment += distance(i, i + 1) / (n / 2);
    for (let j = 0; j < i; j += 2, pairs++) spread += Math.exp(-2 * distance(i, j));
  }
  return { alignment, uniformity: Math.log(spread / pairs), views: X.slice(0, 2 * shown * data.mean.length) };
}
