// LeJEPA's terms against the formula written out slowly and a value of the library, and the histogram's bins.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BINS, binned, expected } from "../../contrastive_lab/components/dimension_view/histogram.js";
import { notesOf } from "../../contrastive_lab/components/dimension_view/sentence.js";
import {
  directionOf,
  extend,
  gaussianOf,
  gaussianTerms,
  projection,
  ranked,
  statisticOf,
} from "../../contrastive_lab/components/shared/gaussian.js";
import { generator } from "../../contrastive_lab/components/shared/random.js";

const near = (a, b, by = 1e-9) => assert.ok(Math.abs(a - b) <= by * Math.max(1, Math.abs(b)), `${a} is not ${b}`);
const n = 40,
  d = 3;

/** Views (n·2·d) of normal rows, with all images' first dimension multiplied. */
function views(scale = 1) {
  const { normal } = generator(5),
    Z = Float32Array.from({ length: 2 * n * d }, normal);
  return Z.map((x, k) => (k % d ? x : x * scale));
}

test("a statistic is the library's", () => {
  // float(sigreg(Views(x, x, ones(6)), x[:, None])) of contrastive_core/losses/lejepa.py, and of zeros
  near(statisticOf(Float64Array.from([0.5, -1.25, 2.0, 0.1, -0.3, 3.5])), 0.9370706178821709);
  near(statisticOf(new Float64Array(6)), 2.4122854783899874);
});

test("normal rows have a small statistic, a point and a wide spread a large one", () => {
  const { normal } = generator(1),
    x = Float64Array.from({ length: 256 }, normal);
  assert.ok(statisticOf(x) < 1.5);
  assert.ok(statisticOf(x.map((v) => 0.1 * v)) > 30);
  assert.ok(statisticOf(x.map((v) => 5 * v)) > 30);
});

test("directions have length 1, and a larger M keeps those that were there", () => {
  near(Math.hypot(...directionOf(7, 50)), 1);
  const found = gaussianOf(views(), n, d);
  extend(found, 4);
  const before = [...found.statistics[1]];
  assert.equal(extend(found, 9), 9);
  assert.deepEqual(found.statistics[1].slice(0, 4), before);
  assert.equal(extend(found, 2), 2);
  assert.equal(extend(found, 50, 0), 9); // no time: what is there
});

test("terms are the mean distance of the views and the mean statistic, traded by λ", () => {
  const Z = views(),
    found = gaussianOf(Z, n, d),
    knobs = { trade_off: 0.3 };
  extend(found, 5);
  let distance = 0,
    statistic = 0;
  for (let i = 0; i < n; i++)
    for (let j = 0; j < d; j++) {
      const [a, b] = [Z[2 * i * d + j], Z[(2 * i + 1) * d + j]];
      for (const z of [a, b]) distance += (z - (a + b) / 2) ** 2 / (2 * n * d);
    }
  for (let k = 0; k < 5; k++)
    for (const view of [0, 1]) {
      const u = directionOf(k, d),
        rows = Float64Array.from({ length: n * d }, (_, at) => Z[(2 * Math.floor(at / d) + view) * d + (at % d)]);
      statistic += statisticOf(projection(rows, u)) / 10;
    }
  const [own, gaussian] = gaussianTerms(found, knobs, 5);
  near(own.part, 0.7 * distance);
  near(gaussian.value, statistic);
  near(gaussian.part, 0.3 * statistic);
});

test("the worst direction is the one along which the rows were stretched", () => {
  const found = gaussianOf(views(6), n, d);
  extend(found, 200);
  const order = ranked(found, 200),
    along = (k) => Math.abs(directionOf(k, d)[0]);
  assert.ok(along(order[0]) > 0.8 && along(order[199]) < 0.3, `${along(order[0])} ${along(order[199])}`);
  assert.equal(new Set(order).size, 200);
});

test("bins hold every row, those beyond the axis at its ends", () => {
  const counts = binned(Float64Array.from([-9, -0.01, 0, 0.1, 12]));
  assert.equal(counts.length, BINS);
  assert.deepEqual([counts[0], counts[BINS / 2 - 1], counts[BINS / 2], counts[BINS - 1]], [1, 1, 2, 1]);
  const all = counts.map((_, bin) => expected(bin, 100)).reduce((a, b) => a + b, 0);
  near(all, 100, 1e-3);
});

test("an absent term is said, and rank is not a matter of projections", () => {
  const of = (trade_off) => notesOf(gaussianOf(new Float32Array(2 * 2 * 5), 2, 5), { trade_off });
  assert.deepEqual(of(0.5), []);
  assert.match(of(0)[0], /shrinking to one point/);
  assert.match(of(1)[0], /two views/);
});
