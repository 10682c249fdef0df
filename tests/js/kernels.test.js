// The kernels against the formulas written out slowly. tests/unit/components holds them to the library.

import assert from "node:assert/strict";
import { test } from "node:test";

import { evaluate } from "../../contrastive_lab/components/shared/kernels.js";

const near = (a, b) => assert.ok(Math.abs(a - b) <= 1e-5 * Math.max(1, Math.abs(b)), `${a} is not ${b}`);

/** @type {Kernel} */
const SOFTMAX = {
  family: "softmax",
  knob: "temperature",
  temperature: 0.5,
  denominator: "all",
  aggregate: "out",
  scale: "none",
  base: null,
  sign: 1,
};

/** @type {Kernel} */
const OWN = { ...SOFTMAX, denominator: "own_positive" };
/** @type {Kernel} */
const DECOUPLED = { ...OWN, positive: "out", weighting: "none", sigma: 0.5 };
/** @type {Kernel} */
const HARD = { ...OWN, negatives: "hard", beta: 1, tau_plus: 0.1 };
/** @type {Kernel} */
const SIGMOID = { family: "sigmoid", knob: "temperature", temperature: 0.3, bias: -1, sign: 1 };
/** @type {Kernel} */
const ROBUST = { family: "robust", knob: "temperature", temperature: 0.5, q: 0.5, density_weight: 0.01, sign: 1 };

/** Scores (n·n), and a mask of groups of two with self pairs. */
function square(n, seed = 1) {
  let state = seed;
  const random = () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
  const S = Float32Array.from({ length: n * n }, () => 2 * random() - 1);
  const M = Uint8Array.from({ length: n * n }, (_, k) => {
    const i = Math.floor(k / n);
    const j = k % n;
    return i === j ? 3 : i >> 1 === j >> 1 ? 1 : 2;
  });
  return { S, M };
}

test("a softmax loss is minus the log of the positive's share", () => {
  const n = 6;
  const { S, M } = square(n);
  for (const temperature of [0.05, 0.5, 5]) {
    const out = evaluate(S, M, n, n, { ...SOFTMAX, temperature });
    for (let i = 0; i < n; i++) {
      const columns = [...Array(n).keys()].filter((j) => j !== i);
      const sum = columns.reduce((total, j) => total + Math.exp(S[i * n + j] / temperature), 0);
      near(out.loss[i], Math.log(sum) - S[i * n + (i ^ 1)] / temperature);
      near(
        columns.reduce((total, j) => total + out.pair[i * n + j], 0),
        1,
      );
    }
    near(out.value, [...out.loss].reduce((a, b) => a + b) / n);
  }
});

const sumOf = (list) => list.reduce((a, b) => a + b, 0);
const negativesOf = (M, n, i) => [...Array(n).keys()].filter((j) => M[i * n + j] === 2);

test("gradients are those of finite differences, for every form", () => {
  const n = 6;
  const { S, M } = square(n, 7);
  const far = S.map((s) => 1 + s); // distances are not negative
  /** @type {[Float32Array, Kernel][]} */
  const cases = [
    [S, SOFTMAX],
    [S, { ...SOFTMAX, denominator: "own_positive" }],
    [S, { ...SOFTMAX, aggregate: "in" }],
    [far, { family: "hinge", form: "pair", knob: "margin", margin: 0.9, squared: false }],
    [far, { family: "hinge", form: "triplet", knob: "margin", margin: 0.4, mining: "all", average: "all" }],
    [S, { ...SOFTMAX, denominator: "own_positive", negative_margin: 0.1 }],
    [S, { ...SOFTMAX, denominator: "own_positive", positive_share: 0.95 }],
    [S, DECOUPLED],
    [S, HARD],
    [S, { ...HARD, beta: 2, tau_plus: 0.4 }],
    [S, SIGMOID],
    [S, ROBUST],
  ];
  for (const [scores, kernel] of cases) {
    const { grad } = evaluate(scores, M, n, n, kernel);
    const copy = grad.slice();
    for (let k = 0; k < n * n; k++) {
      const loss = [1, -1].map((sign) => {
        const moved = Float64Array.from(scores);
        moved[k] += sign * 1e-6;
        return evaluate(moved, M, n, n, kernel).loss[Math.floor(k / n)];
      });
      const slope = (loss[0] - loss[1]) / 2e-6;
      assert.ok(Math.abs(slope - copy[k]) < 1e-4, `${JSON.stringify(kernel)} ${k}: ${slope} and ${copy[k]}`);
    }
  }
});

test("the weights of hard negatives follow β, and sum to 1", () => {
  const n = 8,
    { S, M } = square(n, 5);
  const weights = [0, 1, 3].map((beta) => evaluate(S, M, n, n, { ...HARD, beta }).pair.slice()),
    plain = evaluate(S, M, n, n, { ...SOFTMAX, temperature: HARD.temperature }).pair;
  for (let k = 0; k < n * n; k++) near(weights[0][k], plain[k]);
  for (let i = 0; i < n; i++) {
    const hardest = negativesOf(M, n, i).reduce((a, j) => (S[i * n + j] > S[i * n + a] ? j : a)),
      [first, second, third] = weights.map((pair) => pair[i * n + hardest]);
    assert.ok(first < second && second < third);
    for (const pair of weights) near(sumOf([...pair.slice(i * n, (i + 1) * n)]), 1);
  }
});

test("nothing overflows at a temperature of a thousandth", () => {
  const S = Float32Array.of(0, 1, -1, 1, 0, 1, -1, 1, 0);
  const M = Uint8Array.of(3, 1, 2, 1, 3, 2, 2, 2, 3);
  const out = evaluate(S, M, 3, 3, { ...SOFTMAX, temperature: 0.001 });
  for (const values of [out.loss, out.pair, out.grad, out.effective])
    assert.ok(Array.from(values).every(Number.isFinite));
  assert.equal(out.weight[2], 0); // the third has no positive
  assert.equal(out.valid, 2);
});

test("arrays are used again, and say the same", () => {
  const { S, M } = square(8, 3);
  const first = evaluate(S, M, 8, 8, SOFTMAX);
  const value = first.value;
  evaluate(S, M, 8, 8, { ...SOFTMAX, temperature: 2 }, first);
  const again = evaluate(S, M, 8, 8, SOFTMAX, first);
  assert.equal(again, first);
  assert.equal(again.value, value);
});

test("hard negatives, decoupled, sigmoid and robust losses are their formulas written out", () => {
  const n = 8,
    { S, M } = square(n, 11),
    results = [HARD, DECOUPLED, SIGMOID, ROBUST].map((kernel) => evaluate(S, M, n, n, kernel).loss.slice());
  const mean = sumOf([...Array(n).keys()].map((i) => Math.exp(S[i * n + (i ^ 1)] / 0.5))) / n;
  const weighted = evaluate(S, M, n, n, { ...DECOUPLED, weighting: "von_mises" }).loss;
  for (let i = 0; i < n; i++) {
    const s = negativesOf(M, n, i).map((j) => S[i * n + j]),
      p = S[i * n + (i ^ 1)],
      e = s.map((x) => Math.exp(x / 0.5)),
      omega = e.map((x) => x / sumOf(e)),
      K = s.length;
    const raw = (K * sumOf(e.map((x, k) => omega[k] * x)) - 0.1 * K * Math.exp(p / 0.5)) / 0.9,
      G = Math.max(raw, K * Math.exp(-1 / 0.5));
    near(results[0][i], Math.log(Math.exp(p / 0.5) + G) - p / 0.5);
    near(results[1][i], Math.log(sumOf(e)) - p / 0.5);
    near(weighted[i], Math.log(sumOf(e)) - ((2 - Math.exp(p / 0.5) / mean) * p) / 0.5);
    const judged = (y, x) => Math.log(1 + Math.exp(-y * (x / 0.3 - 1)));
    near(results[2][i], judged(1, p) + sumOf(s.map((x) => judged(-1, x))));
    const all = Math.exp(p / 0.5) + sumOf(e);
    near(results[3][i], (-Math.exp((0.5 * p) / 0.5) + Math.pow(0.01 * all, 0.5)) / 0.5);
  }
});

test("hard negatives without β and τ⁺ are InfoNCE, and without negatives nothing is decoupled", () => {
  const n = 6,
    { S, M } = square(n, 5),
    plain = evaluate(S, M, n, n, OWN),
    same = evaluate(S, M, n, n, { ...HARD, beta: 0, tau_plus: 0 });
  // K times the mean of e^ℓ is their sum
  for (let i = 0; i < n; i++) near(same.loss[i], plain.loss[i]);
  for (let k = 0; k < n * n; k++) near(same.grad[k], plain.grad[k]);
  const alone = evaluate(S.subarray(0, 4), Uint8Array.of(3, 1, 1, 3), 2, 2, DECOUPLED);
  assert.deepEqual([alone.value, alone.valid], [0, 0]);
});

test("a negative above the nearest positive by the margin is left out, marked and counted", () => {
  const S = Float32Array.of(1, 0.5, 0.9, 0.1),
    M = Uint8Array.of(3, 1, 2, 2);
  const kernel = { ...OWN, negative_margin: 0.3 },
    out = evaluate(S, M, 1, 4, kernel);
  assert.equal(out.leftOut[0], 1);
  assert.equal(out.negatives[0], 1);
  assert.deepEqual([...out.kept], [3, 1, 0, 2]);
  assert.equal(out.grad[2], 0);
  near(out.loss[0], Math.log(1 + Math.exp((0.1 - 0.5) / 0.5)));
  assert.equal(evaluate(S, M, 1, 4, { ...kernel, negative_margin: 0.5 }, out).leftOut[0], 0);
  for (const [positive_share, leftOut] of [
    [0.95, 1],
    [0.1, 2],
    [1.9, 0],
  ])
    assert.equal(evaluate(S, M, 1, 4, { ...OWN, positive_share }, out).leftOut[0], leftOut);
  assert.equal(evaluate(S, M, 1, 4, OWN, out).leftOut[0], 0);
});
