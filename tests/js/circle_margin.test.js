// The arc of a margin on the circle ends where the loss lets go of a negative.

import assert from "node:assert/strict";
import { test } from "node:test";

import { circleScores, compute, marginAngle } from "../../contrastive_lab/components/circle/forces.js";
import { advance, course, restart } from "../../contrastive_lab/components/circle/points.js";
import { evaluate } from "../../contrastive_lab/components/shared/kernels.js";

/** @type {any} */
const PAIRS = { family: "hinge", form: "pair", knob: "margin", margin: 0.8, squared: false };
/** @type {any} */
const TRIPLET = { family: "hinge", form: "triplet", knob: "margin", margin: 0.5, mining: "all", average: "all" };

/** A point, its positive, and a negative at this angle from it: whether the negative is pushed. */
function isPushed(kernel, score, at) {
  const angles = Float64Array.of(0, 0.3, -at),
    M = Uint8Array.of(3, 1, 2, 1, 3, 2, 2, 2, 3);
  return evaluate(circleScores(angles, score, new Float64Array(9)), M, 3, 3, kernel, null).effective[0] === 1;
}

test("within the arc a negative is pushed, beyond it no more", () => {
  for (const [kernel, score] of [
    [PAIRS, "distance"],
    [{ ...PAIRS, squared: true }, "distance"],
    [TRIPLET, "squared_distance"],
  ]) {
    /** @type {any} */
    const ring = { kernel, n: 3, M: Uint8Array.of(3, 1, 2, 1, 3, 2, 2, 2, 3), angles: Float64Array.of(0, 0.3, 2) };
    const half = marginAngle(ring, 0);
    assert.ok(half > 0.3 && half < Math.PI);
    assert.ok(isPushed(kernel, score, half - 1e-6));
    assert.ok(!isPushed(kernel, score, half + 1e-6));
  }
});

test("a margin beyond the circle reaches all around, and a temperature has none", () => {
  /** @type {any} */
  const ring = { kernel: { ...PAIRS, margin: 2.5 }, n: 2, M: Uint8Array.of(3, 2, 2, 3), angles: Float64Array.of(0, 1) };
  assert.equal(marginAngle(ring, 0), Math.PI);
  assert.equal(marginAngle({ ...ring, kernel: { family: "softmax" } }, 0), 0);
  assert.equal(marginAngle({ ...ring, kernel: TRIPLET }, 0), 0); // without a positive there is no triplet
});

test("a long course keeps its start", () => {
  /** @type {any} */
  const ring = {
    points: { value: 6 },
    groups: { value: 2 },
    towers: { checked: false },
    scatter: 0,
    speed: { value: 300 },
    held: -1,
  };
  Object.assign(ring, { meta: { score: "distance" }, kernel: PAIRS });
  restart(ring);
  for (let k = 0; k < 1500; k++) advance(ring);
  const steps = ring.history.map(([step]) => step);
  assert.equal(steps[0], 0);
  assert.ok(steps.length <= 400 && steps.at(-1) > 1490);
  assert.ok(steps.every((step, k) => step === k * steps[1]));
  compute(ring);
  const last = course(ring).at(-1);
  assert.deepEqual(last, [1500, ring.out.value, ring.alignment, ring.uniformity]); // the state that is shown
});

test("a course begins with the first step", () => {
  /** @type {any} */
  const ring = { history: [], step: 0, out: { value: 1 }, alignment: 0, uniformity: 0 };
  assert.deepEqual(course(ring), []);
});
