// Which parts are shown on two samples while a patch is pointed at.

import assert from "node:assert/strict";
import { test } from "node:test";

import { largestAt, partsOf, placeAt } from "../../contrastive_lab/components/alike/parts.js";

/** @type {import("../../contrastive_lab/components/alike/parts.js").Parts} */
const parts = { patches: Float32Array.of(1, 2, 3, 4, -50, 6), counts: [2, 3] };

test("without a patch that is pointed at, each has the sum of its pairs", () => {
  assert.deepEqual([...partsOf(parts, 0, null)], [6, -40]);
  assert.deepEqual([...partsOf(parts, 1, null)], [5, -48, 9]);
});

test("a patch lights its partners in the other sample and leaves its own", () => {
  assert.deepEqual([...partsOf(parts, 1, { side: 0, place: 1 })], [4, -50, 6]);
  assert.deepEqual([...partsOf(parts, 0, { side: 1, place: 0 })], [1, 4]);
  assert.deepEqual([...partsOf(parts, 0, { side: 0, place: 1 })], [6, -40]);
  assert.equal(largestAt(partsOf(parts, 1, { side: 0, place: 1 })), 1);
});

test("a point on the picture has a patch, also at the edge", () => {
  assert.equal(placeAt(0.3, 0.6, [4, 4]), 9);
  assert.equal(placeAt(1, 1, [4, 2]), 7);
  assert.equal(placeAt(-0.1, 0, [4, 2]), 0);
});
