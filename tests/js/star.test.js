// The star: who stands where, and who gets how much.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  chosen,
  distance,
  ease,
  effective,
  freePlace,
  glide,
  places,
  pushShares,
  radiusOf,
  similarityAt,
} from "../../contrastive_lab/components/star/layout.js";
import { lay, swell, watchStrongest } from "../../contrastive_lab/components/star/scene.js";
import { evaluate } from "../../contrastive_lab/components/shared/kernels.js";

const S = Float32Array.from({ length: 64 }, (_, j) => (j ? Math.cos(j * 1.7) : 1)),
  M = Uint8Array.from({ length: 64 }, (_, j) => (j === 0 ? 3 : j === 1 ? 1 : 2));

test("shares of the push are those of NT-Xent's gradient", () => {
  const { negatives } = chosen(S, M, 20);
  for (const temperature of [0.02, 0.2, 2]) {
    const kernel = { family: "softmax", denominator: "all", aggregate: "out", scale: "none", base: null, sign: 1 },
      out = evaluate(S, M, 1, 64, /** @type {any} */ ({ ...kernel, temperature })),
      shares = pushShares(S, negatives, temperature),
      total = negatives.reduce((sum, j) => sum + Math.abs(out.grad[j]), 0);
    negatives.forEach((j, k) => assert.ok(Math.abs(shares[k] - Math.abs(out.grad[j]) / total) < 1e-5));
    assert.ok(Math.abs(effective(shares) / out.effective[0] - 1) < 1e-6);
  }
});

test("the nearest negatives stand there, and some of the others from near to far", () => {
  const { positives, negatives, shown } = chosen(S, M, 20);
  assert.deepEqual(positives, [1]);
  assert.equal(negatives.length, 62);
  assert.deepEqual(shown.slice(0, 10), negatives.slice(0, 10));
  assert.equal(new Set(shown).size, 20);
  assert.deepEqual(chosen(S, M, 100).shown, negatives);
});

test("images do not overlap, and their distance is the dissimilarity alone", () => {
  const { positives, shown } = chosen(S, M, 20),
    rows = [...positives, ...shown],
    scale = { inner: 110, outer: 290, least: Math.min(...rows.map((j) => S[j])), tile: 60 },
    at = places(
      rows.map((j) => S[j]),
      scale,
    );
  for (let i = 0; i < at.length; i++) for (let j = 0; j < i; j++) assert.ok(distance(at[i], at[j]) >= 60);
  const byScore = rows.map((j, k) => [S[j], at[k].radius]).sort((a, b) => b[0] - a[0]);
  for (let k = 1; k < byScore.length; k++) assert.ok(byScore[k][1] >= byScore[k - 1][1]);
  for (const s of [1, 0.5, scale.least]) assert.ok(Math.abs(similarityAt(radiusOf(s, scale), scale) - s) < 1e-9);
  assert.deepEqual([similarityAt(0, scale), similarityAt(1000, scale)], [1, scale.least]); // no farther than any image
});

test("a label stands at the first place that is free of images and arrows", () => {
  const sides = [[0, 40], [0, -40], [50, 0]]; // prettier-ignore
  assert.deepEqual(freePlace(sides, [30, 14], []), sides[0]);
  assert.deepEqual(freePlace(sides, [30, 14], [[0, 60, 60, 60]]), sides[1]);
  assert.equal(freePlace(sides, [30, 14], [[0, 0, 200, 200]]), undefined);
});

test("where the words take all of the width no image stands behind the anchor", () => {
  for (const left of [0, 290, 500]) {
    const scene = /** @type {any} */ ({ batch: { scores: S, mask: M }, left, bottom: 0, before: new Map() });
    lay(scene, 300, 600);
    for (const { radius } of scene.images) assert.ok(radius > 0);
    assert.ok(Math.abs(similarityAt(radiusOf(0.5, scene.scale), scene.scale) - 0.5) < 1e-9);
  }
});

test("the temperature glides from 0.5 to 0.1 and back", () => {
  assert.equal(glide(0), 0.5);
  assert.ok(Math.abs(glide(5000) - 0.1) < 1e-9);
  assert.ok(Math.abs(glide(9000) - 0.5) < 1e-9);
  assert.deepEqual([ease(-1), ease(0.5), ease(2)], [0, 0.5, 1]);
});

test("the strongest negative swells once where it is another one, and never without motion", () => {
  for (const still of [false, true]) {
    const scene = { images: [{ column: 1 }, { column: 2 }, { column: 3 }], still, pulsed: -Infinity };
    watchStrongest(scene, [0, -1, 0.2, 0.8]);
    watchStrongest(scene, [0, -1, 0.3, 0.7]); // the same one
    assert.equal(swell(scene), 1);
    watchStrongest(scene, [0, -1, 0.6, 0.4]);
    assert.equal(swell(scene) > 1, !still);
    scene.pulsed -= 300;
    assert.equal(swell(scene), 1);
  }
});
