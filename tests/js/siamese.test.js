// The small training on the circle: what collapses, what does not, and what is told of it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { factsOf } from "../../contrastive_lab/components/siamese/course.js";
import { advance, begin, places, spreadOf } from "../../contrastive_lab/components/siamese/training.js";

const SEEDS = [0, 1, 2, 8]; // 8 is the slowest of the 20 that benchmarks/collapse.mjs measures
/** @type {import("../../contrastive_lab/components/siamese/training.js").Settings} */
const BOTH = {
  method: "simsiam",
  predictor: true,
  stopGradient: true,
  rate: 0.3,
  predictorRate: 1,
  momentum: 0.9,
};

/** The spread after some steps. */
function spreadAfter(steps, seed, settings) {
  const training = begin(seed);
  for (let k = 0; k < steps; k++) advance(training, settings);
  return spreadOf(places(training).points).spread;
}

test("seeds have collapsed after 500 steps without stop-gradient or without predictor", () => {
  for (const off of [{ stopGradient: false }, { predictor: false }])
    for (const seed of SEEDS) assert.ok(spreadAfter(500, seed, { ...BOTH, ...off }) < 0.1, `${seed}`);
});

test("no seed has collapsed with both", () => {
  for (const seed of SEEDS) assert.ok(spreadAfter(300, seed, BOTH) > 0.2, `${seed}`);
});

test("without a predictor the stop-gradient halves the gradient", () => {
  const moved = [true, false].map((stopGradient) => {
    const training = begin(3),
      before = training.encoder.w.slice();
    advance(training, { ...BOTH, predictor: false, stopGradient });
    return training.encoder.w.map((w, k) => w - before[k]);
  });
  assert.ok(moved[0].some((d) => Math.abs(d) > 1e-3));
  moved[0].forEach((d, k) => assert.ok(Math.abs(2 * d - moved[1][k]) < 1e-6));
});

test("a target with m = 0 is the encoder one step ago, and with m = 1 the first one", () => {
  const first = begin(1).encoder.w.slice();
  for (const momentum of [0, 1]) {
    const training = begin(1);
    for (let k = 0; k < 3; k++) advance(training, { ...BOTH, method: "byol", momentum });
    assert.deepEqual(training.target.w, momentum ? first : training.encoder.w);
  }
});

test("spread is 1 evenly around the circle and 0 in one point", () => {
  const around = Array.from({ length: 8 }, (_, k) => [Math.cos((k * Math.PI) / 4), Math.sin((k * Math.PI) / 4)]);
  const { spread, resultant } = spreadOf(around);
  assert.ok(Math.abs(spread - 1) < 1e-12 && resultant < 1e-12);
  assert.deepEqual(spreadOf(Array(4).fill([0, 1])), { spread: 0, resultant: 1 });
});

test("a goal is reached by its own setting alone", () => {
  /** @type {any} */
  const part = { spread: 0.03, training: { step: 700 }, collapsedAt: 90 };
  const facts = (predictor, stopGradient, more = {}) => factsOf({ ...part, predictor, stopGradient, ...more });
  assert.deepEqual(facts(true, false), {
    spreadWithoutStopGradient: 0.03,
    spreadWithoutPredictor: NaN,
    stepsWithBoth: NaN,
  });
  assert.equal(facts(false, true).spreadWithoutPredictor, 0.03);
  assert.deepEqual(Object.values(facts(false, false)), [NaN, NaN, NaN]);
  assert.equal(facts(true, true).stepsWithBoth, 0); // it collapsed at some step
  assert.equal(facts(true, true, { collapsedAt: 0 }).stepsWithBoth, 700);
});
