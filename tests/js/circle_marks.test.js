// What tells groups apart on a circle, axes without noise, and points that rest in the same places at every τ.

import assert from "node:assert/strict";
import { test } from "node:test";

import { compute } from "../../contrastive_lab/components/circle/forces.js";
import { pointAt } from "../../contrastive_lab/components/circle/pointer.js";
import { MOST_GROUPS, advance, axisOf, isEven, restart } from "../../contrastive_lab/components/circle/points.js";
import { lookOf } from "../../contrastive_lab/components/shared/group_marks.js";

test("no two groups share a color and a shape", () => {
  const looks = Array.from({ length: MOST_GROUPS }, (_group, k) => JSON.stringify(lookOf(k)));
  assert.equal(new Set(looks).size, MOST_GROUPS);
});

test("an axis does not zoom into rounding noise, and shows a change", () => {
  const [low, high] = axisOf([1e-32, 4e-32, 2e-32]);
  assert.ok(high - low >= 1e-3 && low < 0 && high > 0);
  const [from, to] = axisOf([2.4, 2.4 + 4e-16]);
  assert.ok(to - from >= 2e-3);
  assert.deepEqual(axisOf([0.5, 2.5, 1]), [0.5, 2.5]);
});

/** @returns {any} */
function ringOf(points, groups, temperature) {
  const kernel = { family: "softmax", knob: "temperature", temperature, denominator: "all", aggregate: "out" };
  const ring = {
    points: { value: points },
    groups: { value: groups },
    towers: { checked: false },
    ...{ scatter: 0, held: -1, speed: { value: 400 }, meta: { score: "dot" } },
    kernel: { ...kernel, scale: "none", base: null, sign: 1 },
  };
  restart(/** @type {any} */ (ring));
  return ring;
}

test("groups of two come to rest in the same places at every τ", () => {
  for (const temperature of [0.05, 0.2, 0.5]) {
    const ring = ringOf(24, 12, temperature);
    assert.ok(!isEven(ring));
    for (let k = 0; k < 6000 && !isEven(ring); k++) advance(ring);
    assert.ok(isEven(ring), `τ ${temperature} after ${ring.step} steps`);
    for (const other of [0.02, 0.2, 2]) {
      ring.angles = Float64Array.from(ring.group, (k) => (2 * Math.PI * k) / 12);
      ring.kernel.temperature = other;
      compute(ring);
      assert.ok(Math.max(...ring.force.map(Math.abs)) < 1e-9);
    }
  }
});

test("of larger groups nothing is claimed", () => {
  const ring = ringOf(12, 3, 0.5);
  ring.angles = Float64Array.from(ring.group, (k) => (2 * Math.PI * k) / 3);
  assert.ok(!isEven(ring));
});

test("a point is caught beside it, the nearest one first", () => {
  const ring = {
    spots: [
      [100, 100],
      [120, 100],
    ],
  };
  assert.equal(pointAt(ring, 106, 112), 0);
  assert.equal(pointAt(ring, 116, 112), 1);
  assert.equal(pointAt(ring, 100, 150), -1);
});
