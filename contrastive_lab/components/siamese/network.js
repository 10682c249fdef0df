// A network with one hidden layer (tanh) and two outputs that are scaled to length 1: forward and backward.

/**
 * @typedef {object} Network
 * @property {number} inputs
 * @property {number} hidden
 * @property {Float64Array} w first layer (hidden·inputs), its bias (hidden), second layer (2·hidden), its bias (2)
 */

/** @typedef {{ x: ArrayLike<number>, a: number[], length: number, z: number[] }} Pass: small typed arrays are slow */

/**
 * Weights drawn from N(0, 1/fan-in), biases 0.
 *
 * @param {number} inputs
 * @param {number} hidden
 * @param {{ normal: () => number }} random
 * @returns {Network}
 */
export function network(inputs, hidden, random) {
  const w = new Float64Array(hidden * inputs + hidden + 2 * hidden + 2),
    second = hidden * inputs + hidden;
  for (let k = 0; k < hidden * inputs; k++) w[k] = random.normal() / Math.sqrt(inputs);
  for (let k = 0; k < 2 * hidden; k++) w[second + k] = random.normal() / Math.sqrt(hidden);
  return { inputs, hidden, w };
}

/**
 * @param {Network} net
 * @param {ArrayLike<number>} x (inputs)
 * @returns {Pass}
 */
export function forward({ inputs, hidden, w }, x) {
  const a = new Array(hidden),
    second = hidden * inputs + hidden,
    y = [w[second + 2 * hidden], w[second + 2 * hidden + 1]];
  for (let h = 0; h < hidden; h++) {
    let sum = w[hidden * inputs + h];
    for (let k = 0; k < inputs; k++) sum += w[h * inputs + k] * x[k];
    a[h] = 1 - 2 / (Math.exp(2 * sum) + 1); // tanh, in a third of Math.tanh's time
    y[0] += w[second + h] * a[h];
    y[1] += w[second + hidden + h] * a[h];
  }
  const length = Math.max(1e-12, Math.sqrt(y[0] * y[0] + y[1] * y[1]));
  return { x, a, length, z: [y[0] / length, y[1] / length] };
}

/**
 * Adds a pass's gradient to `into`; returns the one with respect to its inputs.
 *
 * @param {Network} net
 * @param {Pass} pass
 * @param {number[]} slope ∂loss/∂z (2)
 * @param {Float64Array} into like the weights
 */
export function backward({ inputs, hidden, w }, { x, a, length, z }, slope, into) {
  const second = hidden * inputs + hidden,
    along = slope[0] * z[0] + slope[1] * z[1],
    dy = [(slope[0] - along * z[0]) / length, (slope[1] - along * z[1]) / length], // only across z
    dx = new Array(inputs).fill(0);
  into[second + 2 * hidden] += dy[0];
  into[second + 2 * hidden + 1] += dy[1];
  for (let h = 0; h < hidden; h++) {
    into[second + h] += dy[0] * a[h];
    into[second + hidden + h] += dy[1] * a[h];
    const d = (dy[0] * w[second + h] + dy[1] * w[second + hidden + h]) * (1 - a[h] * a[h]);
    into[hidden * inputs + h] += d;
    for (let k = 0; k < inputs; k++) {
      into[h * inputs + k] += d * x[k];
      dx[k] += d * w[h * inputs + k];
    }
  }
  return dx;
}
