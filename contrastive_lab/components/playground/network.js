// Layers of a small network on a batch of rows: forward, backward, and Adam. Hidden layers are ReLU. A test holds
// outputs, gradients and a step to PyTorch's.

import { addProduct, matrix, turned } from "./product.js";

const BETAS = [0.9, 0.999], // Adam's, and its ε: torch.optim's defaults
  EPS = 1e-8;

/**
 * @typedef {object} Network
 * @property {number[]} sizes of the inputs, of each hidden layer and of the outputs
 * @property {Float32Array} w each layer's matrix (inputs·outputs), row by row, then its bias (outputs)
 */

/** Weights drawn from N(0, 2/fan-in), biases 0: a Network. */
export function network(sizes, random) {
  const w = new Float32Array(layersOf(sizes).reduce((sum, { inputs, outputs }) => sum + (inputs + 1) * outputs, 0));
  for (const { inputs, outputs, at } of layersOf(sizes))
    for (let k = 0; k < inputs * outputs; k++) w[at + k] = random.normal() * Math.sqrt(2 / inputs);
  return { sizes, w };
}

/** Sizes of each layer, and where its weights begin. */
function layersOf(sizes) {
  let at = 0;
  return sizes.slice(1).map((outputs, k) => {
    const layer = { inputs: sizes[k], outputs, at };
    at += (sizes[k] + 1) * outputs;
    return layer;
  });
}

/** The rows of every layer, the inputs X (n·inputs) first and the outputs last. */
export function forward({ sizes, w }, X, n) {
  const rows = [X],
    layers = layersOf(sizes);
  layers.forEach(({ inputs, outputs, at }, k) => {
    const to = new Float32Array(n * outputs),
      bias = w.subarray(at + inputs * outputs, at + (inputs + 1) * outputs);
    for (let i = 0; i < n; i++) to.set(bias, i * outputs);
    addProduct(matrix(rows[k], 0, inputs), matrix(w, at, outputs), matrix(to, 0, outputs), [n, inputs, outputs]);
    if (k < layers.length - 1) for (let q = 0; q < to.length; q++) to[q] = Math.max(0, to[q]);
    rows.push(to);
  });
  return rows;
}

/**
 * Gradients of all weights, and, where `wantsInputs`, with respect to the inputs (n·inputs).
 *
 * @param {Network} net
 * @param {Float32Array[]} rows what `forward` gave
 * @param {Float32Array} slope ∂loss/∂outputs (n·outputs)
 * @param {number} n
 * @param {boolean} [wantsInputs]
 */
export function backward({ sizes, w }, rows, slope, n, wantsInputs = false) {
  const gradient = new Float32Array(w.length),
    layers = layersOf(sizes);
  for (let k = layers.length - 1; k >= 0; k--) {
    const { inputs, outputs, at } = layers[k],
      from = rows[k],
      D = matrix(slope, 0, outputs),
      bias = at + inputs * outputs;
    for (let i = 0; i < n; i++) for (let q = 0; q < outputs; q++) gradient[bias + q] += slope[i * outputs + q];
    addProduct(turned(matrix(from, 0, inputs)), D, matrix(gradient, at, outputs), [inputs, n, outputs]);
    if (k === 0 && !wantsInputs) return { gradient, slope: null };
    slope = new Float32Array(n * inputs);
    addProduct(D, turned(matrix(w, at, outputs)), matrix(slope, 0, inputs), [n, outputs, inputs]);
    if (k > 0) for (let q = 0; q < slope.length; q++) if (from[q] === 0) slope[q] = 0;
  }
  return { gradient, slope };
}

/** @param {Network} net */
export function adam({ w }) {
  return { steps: 0, mean: new Float32Array(w.length), square: new Float32Array(w.length) };
}

/** One step of Adam on the weights; `state` is what `adam` gave. */
export function descend({ w }, state, gradient, rate) {
  state.steps++;
  const [a, b] = BETAS,
    first = 1 - a ** state.steps,
    second = Math.sqrt(1 - b ** state.steps);
  for (let k = 0; k < w.length; k++) {
    const g = gradient[k],
      m = (state.mean[k] = a * state.mean[k] + (1 - a) * g),
      v = (state.square[k] = b * state.square[k] + (1 - b) * g * g);
    w[k] -= ((rate / first) * m) / (Math.sqrt(v) / second + EPS);
  }
}

/** Rows Y (n·d) scaled to length 1, and their lengths before (n). */
export function unitRows(Y, d) {
  const n = Y.length / d,
    Z = new Float32Array(Y.length),
    lengths = new Float32Array(n);
  for (let i = 0; i < n; i++) {
    const sum = Y.subarray(i * d, (i + 1) * d).reduce((all, y) => all + y * y, 0);
    lengths[i] = Math.max(1e-12, Math.sqrt(sum));
    for (let k = 0; k < d; k++) Z[i * d + k] = Y[i * d + k] / lengths[i];
  }
  return { Z, lengths };
}

/** ∂loss/∂Y from `slope`, ∂loss/∂Z (n·d) of unit rows: only what is across a row counts. */
export function throughUnit(Z, lengths, slope, d) {
  const found = new Float32Array(slope.length);
  for (let i = 0; i < lengths.length; i++) {
    let along = 0;
    for (let k = i * d; k < (i + 1) * d; k++) along += slope[k] * Z[k];
    for (let k = i * d; k < (i + 1) * d; k++) found[k] = (slope[k] - along * Z[k]) / lengths[i];
  }
  return found;
}
