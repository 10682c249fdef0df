// A training that runs in the browser: a network puts small images on a sphere, and learns from views of them.

import { adam, backward, descend, forward, network, unitRows } from "./network.js";
import { compare, crossCosine, vicReg } from "./objective.js";
import { drawView } from "./views.js";
import { generator } from "../shared/random.js";

const HIDDEN = [256, 128],
  PREDICTOR = 64,
  QUEUE = 512, // keys
  MOMENTUM = 0.99, // of the network that makes them
  VICREG = { invariance: 25, variance: 25, covariance: 1 },
  NEIGHBORS = 15, // that vote
  SAMPLE = 400; // rows of which alignment and uniformity are taken

/** @import { Strengths } from "./views.js" */

/**
 * @typedef {object} Setting
 * @property {string} loss nt_xent, sup_con, info_nce, triplet, vicreg or simsiam
 * @property {number} temperature
 * @property {number} margin
 * @property {number} batch images
 * @property {number} rate
 * @property {boolean} stopGradient of SimSiam
 * @property {Strengths} strengths
 */

/**
 * @typedef {object} Data
 * @property {Float32Array} images (n·side²) from 0 to 1
 * @property {Uint8Array} labels
 * @property {number} side
 * @property {number} learned how many of them are learned from; the rest is held out
 * @property {Float32Array} mean (side²) of these: the network gets what an image has more or less than it
 * @property {Record<string, any>} kernels of the losses that compare rows
 */

/**
 * @param {Data} data
 * @param {number} seed
 * @param {number} dimensions
 */
export function begin(data, seed, dimensions) {
  const random = generator(seed),
    net = network([data.side ** 2, ...HIDDEN, dimensions], random),
    predictor = network([dimensions, PREDICTOR, dimensions], random),
    slow = { ...net, w: net.w.slice() };
  return {
    data,
    d: dimensions,
    net,
    predictor,
    slow,
    queue: new Float32Array(0),
    moments: [adam(net), adam(predictor)],
    random: generator(seed + 1), // of batches and views, apart from the weights
    step: 0,
    loss: NaN,
    matter: NaN,
    same: NaN,
    out: /** @type {any} */ (null),
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
    rows = forward(t.net, centered(batch.X, t.data), batch.n),
    answer = objective(t, setting, rows.at(-1), batch);
  if (!Number.isFinite(answer.value) || !answer.slope.every(Number.isFinite)) {
    t.net.w.set(t.good);
    t.moments = [adam(t.net), adam(t.predictor)];
    return false;
  }
  if (t.step % 20 === 0) t.good.set(t.net.w);
  descend(t.net, t.moments[0], backward(t.net, rows, answer.slope, batch.n).gradient, setting.rate);
  for (let k = 0; k < t.slow.w.length; k++) t.slow.w[k] = MOMENTUM * t.slow.w[k] + (1 - MOMENTUM) * t.net.w[k];
  const { value, matter, same = NaN } = answer;
  Object.assign(t, { loss: value, matter, same, step: t.step + 1 });
  return true;
}

/** Two views of each of some images, image by image. */
function drawBatch(t, { batch, strengths }) {
  const { images, labels, side, learned } = t.data,
    size = side * side,
    count = Math.min(batch, learned),
    X = new Float32Array(2 * count * size),
    of = new Uint8Array(2 * count),
    order = Int32Array.from({ length: learned }, (_, i) => i);
  for (let i = 0; i < count; i++) {
    const j = i + Math.floor(t.random.uniform() * (learned - i));
    [order[i], order[j]] = [order[j], order[i]];
    const image = images.subarray(order[i] * size, (order[i] + 1) * size);
    for (const view of [0, 1]) {
      drawView(image, side, strengths, t.random, X, (2 * i + view) * size);
      of[2 * i + view] = labels[order[i]];
    }
  }
  return { X, n: 2 * count, labels: of };
}

function objective(t, setting, Y, batch) {
  const { d } = t,
    kernel = t.data.kernels[setting.loss];
  switch (setting.loss) {
    case "vicreg":
      return vicReg(VICREG, Y, d);
    case "simsiam":
      return predicted(t, setting, Y, batch.n);
    case "info_nce":
      return queued(t, { ...kernel, temperature: setting.temperature }, Y, batch);
    default: {
      const isBlind = setting.loss === "nt_xent",
        knobs = { temperature: setting.temperature, margin: setting.margin },
        labels = isBlind ? undefined : batch.labels,
        answer = keep(t, compare({ ...kernel, ...knobs }, Y, d, { labels, into: t.out }));
      return isBlind ? { ...answer, same: pushOnOwnClass(answer.out, batch.labels) } : answer;
    }
  }
}

/** The kernel's arrays are used again while a batch has the same size. */
function keep(t, answer) {
  t.out = answer.out;
  return answer;
}

/** The share of the push that goes to images of the anchor's class, over all anchors. */
function pushOnOwnClass({ pair, n, w }, labels) {
  let own = 0,
    all = 0;
  for (let i = 0; i < n; i++)
    for (let j = 0; j < w; j++) {
      if (i >> 1 === j >> 1) continue;
      all += pair[i * w + j];
      if (labels[i] === labels[j]) own += pair[i * w + j];
    }
  return own / all;
}

/** SimSiam: predictions of one view are compared with the rows of the other. */
function predicted(t, { stopGradient, rate }, Y, n) {
  const rows = forward(t.predictor, Y, n),
    { value, ofPredictions, ofRows } = crossCosine(rows.at(-1), Y, t.d),
    { gradient, slope } = backward(t.predictor, rows, ofPredictions, n, true);
  if (!stopGradient) for (let k = 0; k < slope.length; k++) slope[k] += ofRows[k];
  if (Number.isFinite(value)) descend(t.predictor, t.moments[1], gradient, rate);
  return { value, slope, matter: NaN };
}

/** First views against their second ones and earlier keys, all of which a slowly moving network has made. */
function queued(t, kernel, Y, { X, n }) {
  const { d } = t,
    size = X.length / n,
    half = n / 2,
    anchors = new Float32Array(half * d),
    seconds = new Float32Array(half * size);
  for (let i = 0; i < half; i++) {
    anchors.set(Y.subarray(2 * i * d, (2 * i + 1) * d), i * d);
    seconds.set(X.subarray((2 * i + 1) * size, (2 * i + 2) * size), i * size);
  }
  const own = unitRows(forward(t.slow, centered(seconds, t.data), half).at(-1), d).Z,
    keys = new Float32Array(own.length + t.queue.length);
  keys.set(own);
  keys.set(t.queue, own.length);
  const answer = keep(t, compare(kernel, anchors, d, { keys, into: t.out })),
    slope = new Float32Array(Y.length);
  for (let i = 0; i < half; i++) slope.set(answer.slope.subarray(i * d, (i + 1) * d), 2 * i * d);
  t.queue = keys.slice(0, QUEUE * d);
  return { ...answer, slope };
}

/**
 * Unit rows (n·d) of all images as they are.
 *
 * @param {ReturnType<typeof begin>} t
 */
export function embed({ net, data, d }) {
  return unitRows(forward(net, centered(data.images, data), data.labels.length).at(-1), d).Z;
}

/** Images less the mean of those that are learned from. */
function centered(X, { mean }) {
  const size = mean.length;
  return X.map((value, k) => value - mean[k % size]);
}

/**
 * The mean (side²) of the images that are learned from.
 *
 * @param {Float32Array} images
 * @param {number} size
 * @param {number} learned
 */
export function meanOf(images, size, learned) {
  const mean = new Float32Array(size);
  for (let k = 0; k < learned * size; k++) mean[k % size] += images[k] / learned;
  return mean;
}

/**
 * kNN accuracy on the images that are held out, by a vote of their nearest learned ones.
 *
 * @param {Float32Array} Z (n·d) unit rows
 * @param {Data} data
 */
export function accuracy(Z, { labels, learned }) {
  const n = labels.length,
    d = Z.length / n,
    near = new Float64Array(NEIGHBORS),
    votes = new Int32Array(256);
  let right = 0;
  for (let i = learned; i < n; i++) {
    const classes = new Uint8Array(NEIGHBORS);
    near.fill(-Infinity);
    for (let j = 0; j < learned; j++) {
      let s = 0;
      for (let k = 0; k < d; k++) s += Z[i * d + k] * Z[j * d + k];
      if (s <= near[NEIGHBORS - 1]) continue;
      let at = NEIGHBORS - 1;
      for (; at > 0 && near[at - 1] < s; at--) {
        near[at] = near[at - 1];
        classes[at] = classes[at - 1];
      }
      near[at] = s;
      classes[at] = labels[j];
    }
    votes.fill(0);
    for (const c of classes) votes[c]++;
    right += Number(votes.indexOf(Math.max(...votes)) === labels[i]);
  }
  return right / (n - learned);
}

/**
 * Alignment: mean squared distance of two views. Uniformity: log mean exp(−2 d²) of some rows. And a few views to look
 * at, image by image (2·side² each). Their random numbers are not those of the training.
 *
 * @param {ReturnType<typeof begin>} t
 * @param {Setting} setting
 * @param {number} shown images whose views are given
 */
export function look(t, setting, shown) {
  const twin = { ...t, random: generator(t.step) },
    { X, n } = drawBatch(twin, { ...setting, batch: SAMPLE / 2 }),
    { Z } = unitRows(forward(t.net, centered(X, t.data), n).at(-1), t.d),
    distance = (i, j) => {
      let sum = 0;
      for (let k = 0; k < t.d; k++) sum += (Z[i * t.d + k] - Z[j * t.d + k]) ** 2;
      return sum;
    };
  let alignment = 0,
    spread = 0,
    pairs = 0;
  for (let i = 0; i < n; i += 2) {
    alignment += distance(i, i + 1) / (n / 2);
    for (let j = 0; j < i; j += 2, pairs++) spread += Math.exp(-2 * distance(i, j));
  }
  const views = X.slice(0, shown * 2 * t.data.side ** 2);
  return { alignment, uniformity: Math.log(spread / pairs), views };
}
