// Two towers in the live view: partners, and the loss in both directions.

import assert from "node:assert/strict";
import { test } from "node:test";

import { turned, valueBothWays } from "../../contrastive_lab/components/loss_view/directions.js";
import { isAcross, partnersOf } from "../../contrastive_lab/components/loss_view/pairs.js";
import { evaluate } from "../../contrastive_lab/components/shared/kernels.js";

/** Two images with three captions: the first has two. */
function state(kernel) {
  /** @type {any} */
  const lab = {
    n: 2,
    w: 3,
    S: Float32Array.of(0.9, 0.2, -0.4, 0.3, 0.1, 0.8),
    M: Uint8Array.of(1, 1, 2, 2, 2, 1),
    meta: { towers: ["image", "caption"] },
    kernel,
    cache: {},
    stale: true,
  };
  lab.out = evaluate(lab.S, lab.M, 2, 3, kernel);
  return lab;
}

/** @type {Kernel} */
const OWN = {
  family: "softmax",
  knob: "temperature",
  temperature: 0.5,
  denominator: "own_positive",
  aggregate: "out",
  scale: "none",
  base: null,
  sign: 1,
};
/** @type {Kernel} */
const SIGMOID = { family: "sigmoid", knob: "temperature", temperature: 0.5, bias: -1, sign: 1 };

test("a caption belongs to its image, and an image to its captions", () => {
  const lab = state(OWN);
  assert.ok(isAcross(lab));
  assert.deepEqual(partnersOf(lab, 0), [0, 1]);
  assert.deepEqual(partnersOf(lab, null, 1), [0]);
  assert.deepEqual(partnersOf(lab, null, 2), [1]);
  assert.deepEqual(partnersOf(lab, null, null), []);
  assert.ok(!isAcross(/** @type {any} */ ({ meta: {} })));
});

test("a turned matrix has rows and columns in each other's place", () => {
  assert.deepEqual([...turned(Uint8Array.of(1, 2, 3, 4, 5, 6), 2, 3)], [1, 4, 2, 5, 3, 6]);
});

test("the value both ways is the mean of both formulas written out", () => {
  const lab = state(OWN),
    e = (s) => Math.exp(s / 0.5),
    term = (p, negatives) => Math.log(1 + negatives.reduce((sum, s) => sum + e(s), 0) / e(p));
  const forth = ((term(0.9, [-0.4]) + term(0.2, [-0.4])) / 2 + term(0.8, [0.3, 0.1])) / 2,
    back = (term(0.9, [0.3]) + term(0.2, [0.1]) + term(0.8, [-0.4])) / 3;
  assert.ok(Math.abs(valueBothWays(lab) - (forth + back) / 2) < 1e-6);
  const judged = (y, s) => Math.log(1 + Math.exp(-y * (s / 0.5 - 1)));
  const all = [0.9, 0.2, -0.4, 0.3, 0.1, 0.8].reduce((sum, s, k) => sum + judged([1, 1, -1, -1, -1, 1][k], s), 0);
  assert.ok(Math.abs(valueBothWays(state(SIGMOID)) - (all / 2 + all / 3) / 2) < 1e-6);
});

test("it follows the knob, and is not told where there is one tower or no kernel", () => {
  const lab = state(OWN),
    first = valueBothWays(lab);
  lab.kernel = { ...OWN, temperature: 0.1 };
  lab.out = evaluate(lab.S, lab.M, 2, 3, lab.kernel);
  assert.notEqual(valueBothWays(lab), first);
  assert.equal(valueBothWays({ ...lab, meta: {} }), null);
  assert.equal(valueBothWays({ ...lab, kernel: null }), null);
  assert.equal(valueBothWays({ ...lab, out: { ...lab.out, valid: 0 } }), null);
});
