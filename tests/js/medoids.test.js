// Images on a map give way to each other, and stay on the stage.

import assert from "node:assert/strict";
import { test } from "node:test";

import { spread } from "../../contrastive_lab/components/scatter/medoids.js";

/** Pairs that overlap. */
function overlaps(at, side) {
  let count = 0;
  for (let i = 0; i < at.length / 2; i++)
    for (let j = 0; j < i; j++)
      if (Math.abs(at[2 * i] - at[2 * j]) < side - 0.6 && Math.abs(at[2 * i + 1] - at[2 * j + 1]) < side - 0.6) count++;
  return count;
}

test("forty in one crowd are pushed apart and none is lost", () => {
  const wanted = Array.from({ length: 80 }, (_, k) => 200 + ((k * 37) % 60));
  const at = spread(wanted, new Array(40).fill(36), 640, 500);
  assert.equal([...at].filter(Number.isNaN).length, 0);
  assert.equal(overlaps(at, 36), 0);
  for (let k = 0; k < at.length; k++) assert.ok(at[k] >= 18 && at[k] <= [640, 500][k % 2] - 18);
});

test("those that do not touch stay where they belong", () => {
  const wanted = [50, 50, 150, 50, 50, 150];
  assert.deepEqual([...spread(wanted, [36, 36, 36], 300, 300)], wanted);
});

test("where there is no room some are left out and none overlap", () => {
  const at = spread(new Array(80).fill(50), new Array(40).fill(36), 120, 120);
  const left = [...at].filter((v) => !Number.isNaN(v));
  assert.ok(left.length >= 8 && left.length <= 18);
  assert.equal(overlaps(left, 36), 0);
});

test("a larger image keeps its distance from smaller ones", () => {
  const at = spread([100, 100, 104, 103], [80, 30], 300, 300);
  assert.ok(Math.max(Math.abs(at[0] - at[2]), Math.abs(at[1] - at[3])) >= 54.9);
});

test("the corner of the legend stays free: what belongs there stands beside or below it", () => {
  const at = spread([210, 10, 230, 80, 150, 50], [30, 30, 30], 300, 300, [200, 100]);
  assert.deepEqual([...at], [185, 15, 230, 115, 150, 50]);
});
