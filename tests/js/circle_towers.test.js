// Two towers on the circle: who is compared, the gradient of the mean of both directions, and the gap.

import assert from "node:assert/strict";
import { test } from "node:test";

import { circleGradient, circleScores, gapOf } from "../../contrastive_lab/components/circle/forces.js";
import { advance, restart, turnTowers } from "../../contrastive_lab/components/circle/points.js";
import { evaluate } from "../../contrastive_lab/components/shared/kernels.js";

/** @type {any} */
const OWN = {
  family: "softmax",
  knob: "temperature",
  temperature: 0.3,
  denominator: "own_positive",
  aggregate: "out",
  scale: "none",
  base: null,
  sign: 1,
};
const KERNELS = [
  OWN,
  { ...OWN, negatives: "hard", beta: 1, tau_plus: 0.1 },
  { ...OWN, positive: "out", weighting: "none", sigma: 0.5 },
  { ...OWN, negative_margin: 0.1 },
  { family: "sigmoid", knob: "temperature", temperature: 0.3, bias: -2, sign: 1 },
];

/** @returns {any} */
function ringOf(points, groups, checked = true) {
  const ring = { points: { value: points }, groups: { value: groups }, towers: { checked }, scatter: 0, held: -1 };
  restart(/** @type {any} */ (ring));
  return ring;
}

test("only points of the other tower are compared, and a partner is a positive", () => {
  const ring = ringOf(9, 4); // an odd point has no place
  assert.equal(ring.n, 8);
  assert.deepEqual(ring.tower, [0, 0, 0, 0, 1, 1, 1, 1]);
  for (let i = 0; i < 8; i++)
    for (let j = 0; j < 8; j++) {
      const wanted = i === j ? 3 : ring.tower[i] === ring.tower[j] ? 0 : i % 4 === j % 4 ? 1 : 2;
      assert.equal(ring.M[i * 8 + j], wanted);
    }
  assert.ok(!ringOf(8, 2, false).M.includes(0));
});

test("forces are the slopes of the mean of both directions", () => {
  const ring = ringOf(12, 6);
  for (const kernel of KERNELS) {
    const value = (angles) =>
      evaluate(circleScores(angles, "dot", new Float64Array(144)), ring.M, 12, 12, /** @type {any} */ (kernel)).value;
    const out = evaluate(circleScores(ring.angles, "dot", ring.S), ring.M, 12, 12, /** @type {any} */ (kernel));
    const force = circleGradient(ring.angles, "dot", out);
    for (let i = 0; i < 12; i++) {
      const [up, down] = [1e-6, -1e-6].map((d) => {
        const moved = ring.angles.slice();
        moved[i] += d;
        return value(moved);
      });
      assert.ok(Math.abs((up - down) / 2e-6 - force[i]) < 1e-4, `${JSON.stringify(kernel)} ${i}`);
    }
  }
});

test("partners meet, and the gap between the towers closes", () => {
  const ring = ringOf(12, 6);
  Object.assign(ring, { kernel: OWN, meta: { score: "dot" }, speed: { value: 500 } });
  const gap = gapOf(ring);
  for (let s = 0; s < 400; s++) advance(ring);
  assert.ok(ring.alignment < 0.2, String(ring.alignment));
  assert.ok(gapOf(ring) < gap);
  assert.ok(gapOf({ angles: Float64Array.of(0, 0, Math.PI, Math.PI), tower: [0, 0, 1, 1] }) > 1.999);
});

test("turned on, each pair is a group of its own", () => {
  const ring = ringOf(24, 2, false);
  ring.towers.checked = true;
  turnTowers(ring);
  assert.equal(ring.count, 12);
  ring.towers.checked = false;
  turnTowers(ring);
  assert.equal(ring.count, 2);
});
