// The sentence under the slider says what the kernel computed.

import assert from "node:assert/strict";
import { test } from "node:test";

import { placeOf, rowsOf } from "../../contrastive_lab/components/loss_view/bars.js";
import { alongKnob, curveWords } from "../../contrastive_lab/components/loss_view/curves.js";
import { meanNegatives } from "../../contrastive_lab/components/loss_view/figures.js";
import { library } from "../../contrastive_lab/components/loss_view/library.js";
import { shares } from "../../contrastive_lab/components/loss_view/gradients.js";
import { sentence } from "../../contrastive_lab/components/loss_view/sentence.js";
import { number, percent } from "../../contrastive_lab/components/shared/dom.js";
import { evaluate } from "../../contrastive_lab/components/shared/kernels.js";

const KNOBS = { temperature: { label: "τ, temperature" }, margin: { label: "ε, margin" } };

/**
 * A view of one anchor with these scores; M names what each column is.
 *
 * @returns {any}
 */
function view(scores, M, kernel) {
  const S = Float32Array.from(scores),
    mask = Uint8Array.from(M);
  const out = evaluate(S, mask, 1, S.length, kernel);
  const far = kernel.family === "hinge",
    names = scores.map((_, j) => `image ${j}`);
  const meta = { names, columnNames: names, knob: KNOBS[kernel.knob], scoreName: far ? "distance" : "similarity" };
  return { n: 1, w: S.length, S, M: mask, out, kernel, anchor: 0, value: kernel[kernel.knob], cache: {}, meta };
}

/** @type {any} */
const SOFTMAX = { family: "softmax", knob: "temperature", denominator: "all", aggregate: "out", scale: "none" };
/** @type {any} */
const PAIRS = { family: "hinge", form: "pair", knob: "margin", squared: false };
const SCORES = [0.9, 0.8, 0.1, 0],
  MASK = [1, 2, 2, 2];

test("a low temperature pushes the hardest negative alone", () => {
  for (const temperature of [0.05, 0.2, 0.5]) {
    const lab = view(SCORES, MASK, { ...SOFTMAX, temperature });
    const e = SCORES.slice(1).map((s) => Math.exp(s / temperature)),
      share = e[0] / (e[0] + e[1] + e[2]);
    const part = share > 0.99 ? "over 99 %" : `${(100 * share).toFixed(0)} %`;
    assert.match(sentence(lab), new RegExp(`^τ = ${temperature}: The hardest negative, image 1, gets ${part} of`));
    assert.match(sentence(lab), new RegExp(`; ${lab.out.effective[0].toFixed(1)} of 3 matter\\.$`));
    assert.ok(Math.abs(shares(lab).curve[0] - share) < 1e-6);
  }
});

test("the words below the curves are true of each family", () => {
  const range = { label: "τ, temperature", low: 0.01, high: 10, log: true },
    wordsOf = (scores, kernel) => {
      const lab = view(scores, MASK, { ...kernel, temperature: 0.3 });
      lab.meta.knob = range;
      return curveWords(lab, alongKnob(lab).points, true);
    };
  assert.match(wordsOf(SCORES, SOFTMAX), /Below τ = .* the hardest negative gets nearly the whole push.*go to 0\.$/);
  assert.match(wordsOf([0.9, 0.8, 0.79, 0], SOFTMAX), /Even at τ = 0\.01, the lowest one, 1\.\d negatives matter\.$/);
  const sigmoid = { family: "sigmoid", knob: "temperature", sign: 1, bias: -10 };
  assert.match(wordsOf([0.9, 0.8, 0.1, -0.2], sigmoid), /own sigmoid.*goes to 1 \(2 of 3\)\.$/);
  const robust = { family: "robust", knob: "temperature", q: 0.5, density_weight: 0.01 };
  assert.match(wordsOf(SCORES, robust), /which negatives matter\.$/); // its loss does not go to 0
});

test("a high one pushes all about alike", () => {
  const lab = view(SCORES, MASK, { ...SOFTMAX, temperature: 5 });
  assert.equal(sentence(lab), "τ = 5: All 3 negatives are pushed about equally; the hardest, image 1, gets 37 %.");
});

test("all are said to be pushed alike only where the hardest gets less than twice an equal share", () => {
  const scores = [0.9, 0.75, ...Array.from({ length: 61 }, (_, j) => 0.1 * Math.sin(j))],
    mask = scores.map((_, j) => (j ? 2 : 1));
  for (const temperature of [0.5, 1, 5]) {
    const lab = view(scores, mask, { ...SOFTMAX, temperature }),
      times = shares(lab).curve[0] * 62;
    assert.ok(lab.out.effective[0] > 0.9 * 62);
    assert.equal(/about equally/.test(sentence(lab)), times < 2, `τ = ${temperature}`);
    if (times >= 2) assert.match(sentence(lab), new RegExp(`gets \\d %, ${times.toFixed(1)} times an equal share\\.$`));
  }
});

test("a softmax pushes what its figure counts, however little", () => {
  for (const temperature of [0.002, 0.004, 0.008]) {
    const lab = view([0.99, 0.1, 0.09, 0], [1, 2, 2, 2], { ...SOFTMAX, aggregate: "in", temperature });
    assert.equal(shares(lab).total, 0); // in 32 bits
    const counted = lab.out.effective[0].toFixed(1);
    assert.ok(counted >= 1);
    assert.match(sentence(lab), new RegExp(`close to zero.*acts on ${counted} of 3 negatives\\.$`));
  }
});

test("what matters is counted by the push: β and the bias change it as they change the hardest's share", () => {
  const scores = [0.9, 0.8, ...Array.from({ length: 30 }, (_, j) => 0.5 * Math.sin(j))],
    mask = scores.map((_, j) => (j ? 2 : 1));
  /** @type {any} */
  const hard = { ...SOFTMAX, denominator: "own_positive", negatives: "hard", temperature: 0.5, tau_plus: 0 };
  /** @type {any} */
  const sigmoid = { family: "sigmoid", knob: "temperature", temperature: 0.1 };
  for (const kernels of [
    [0, 1, 3].map((beta) => ({ ...hard, beta })),
    [0, -5, -15].map((bias) => ({ ...sigmoid, bias })),
  ]) {
    const views = kernels.map((kernel) => view(scores, mask, kernel)),
      found = views.map(shares);
    for (const lab of views) {
      const push = [...lab.out.grad].filter((_, j) => mask[j] === 2).map(Math.abs),
        total = push.reduce((a, b) => a + b),
        entropy = push.reduce((sum, v) => sum - (v / total) * Math.log(v / total), 0);
      assert.ok(Math.abs(meanNegatives(lab.out, 1)[0] - Math.exp(entropy)) < 1e-4); // the mean counts the push too
      assert.equal(shares(lab), shares(lab)); // taken once
    }
    assert.ok(found[0].counted > found[1].counted && found[1].counted > found[2].counted);
    for (const { counted, curve } of found)
      assert.ok(counted >= 1 / curve[0] - 1e-6, "no share is above the hardest's");
  }
});

test("the margin says how many negatives it leaves out, none too", () => {
  const told = (negative_margin) =>
    sentence(view([0.5, 0.8, 0.55, 0], MASK, { ...SOFTMAX, temperature: 0.5, negative_margin }));
  assert.match(told(0.1), / Left out, as they may be false: 1 of 3 negatives of this anchor, 1 of 3 in the batch\.$/);
  assert.match(
    told(0.4),
    / No negative of the batch \(3\) is left out: none is more similar than the positive by 0\.4\.$/,
  );
  assert.doesNotMatch(told(null), /left out/i);
});

test("a share of the positive says how many negatives it leaves out, none too", () => {
  const told = (positive_share) =>
    sentence(view([0.5, 0.8, 0.55, 0], MASK, { ...SOFTMAX, temperature: 0.5, positive_share }));
  assert.match(told(0.95), /: 2 of 3 negatives of this anchor, 2 of 3 in the batch\.$/);
  assert.match(told(1.7), / No negative of the batch \(3\) is more similar than 1\.7 of the positive\.$/);
});

test("a margin that leaves out all negatives is said to, with its counts", () => {
  const at = (negative_margin) =>
    sentence(view([0.5, 0.8, 0.55, 0.2], MASK, { ...SOFTMAX, temperature: 0.5, negative_margin }));
  assert.equal(
    at(-0.5),
    "τ = 0.5: All 3 negatives are left out by the margin: nothing is pushed away. Left out, as they may be " +
      "false: 3 of 3 negatives of this anchor, 3 of 3 in the batch.",
  );
  assert.match(
    sentence(view([0.5, 0.8], [1, 2], { ...SOFTMAX, temperature: 0.5, negative_margin: 0 })),
    /The margin leaves out the only negative: nothing is pushed away\./,
  );
});

test("a sigmoid's sentence follows its bias: how large push and pull are, and when the push is nearly none", () => {
  const temperature = 0.5,
    sigmoid = (x) => 1 / (1 + Math.exp(-x)),
    told = (bias) => sentence(view(SCORES, MASK, { family: "sigmoid", knob: "temperature", temperature, bias }));
  for (const bias of [-2, 0, 3]) {
    const [pull, ...push] = SCORES.map((s, j) => sigmoid((j ? 1 : -1) * (s / temperature + bias)) / temperature),
      sizes = [push.reduce((a, b) => a + b), pull].map(number);
    assert.ok(
      told(bias).endsWith(` Total push on negatives: ${sizes[0]}; total pull: ${sizes[1]}.`),
      `${told(bias)} is not of ${sizes}`,
    );
  }
  assert.match(
    told(-12),
    /^τ = 0\.5: Negatives are hardly pushed: the total push is 0\.000088, the total pull 2\.00\. The hardest/,
  );
  assert.match(told(-200), /hardly pushed: the total push is 0\.000, the total pull 2\.00\.$/);
});

/** An image whose caption two other images have, and what says each of them. */
function captions(across) {
  const lab = view([0.5, 0.8, 0.4, 0], MASK, { ...SOFTMAX, temperature: 0.5 });
  Object.assign(lab.meta, across);
  return lab;
}

test("negatives that say what the positive says are counted, whichever tower has the texts", () => {
  const texts = ["a dog", "a dog", "a cat", ""],
    said = / 1 of 3 negatives have the same text as the positive\.$/;
  assert.match(sentence(captions({ columnTexts: texts })), said);
  const turned = captions({ texts });
  Object.assign(turned, { n: 4, M: Uint8Array.from([1, 2, 2, 2, 2, 1, 2, 2, 2, 2, 1, 2, 2, 2, 2, 1]) });
  assert.match(sentence(turned), said);
  assert.doesNotMatch(sentence(captions({ columnTexts: ["a dog", "a cat", "", ""] })), /Same text/);
  assert.doesNotMatch(sentence(captions({ columnTexts: ["", "", "", ""] })), /Same text/);
  assert.doesNotMatch(sentence(captions({ columnTexts: ["long…", "long…", "", ""] })), /Same text/); // both are cut
  assert.doesNotMatch(sentence(captions({})), /Same text/);
});

test("a positive that is farther than the nearest candidates has the last bar", () => {
  const rows = [5, 3, 8, 1, 0, 2, 7],
    at = (fit, wanted, positive) => rowsOf(rows, fit, wanted, (j) => j === positive);
  assert.deepEqual(at(4, 0, 2), { from: 0, shown: [5, 3, 8, 2], beyond: 6 });
  assert.deepEqual(at(4, 0, 1), { from: 0, shown: [5, 3, 8, 1], beyond: 0 });
  assert.deepEqual(at(4, 3, 2), { from: 3, shown: [1, 0, 2, 7], beyond: 0 });
  assert.deepEqual(at(4, 9, 5), { from: 3, shown: [1, 0, 2, 7], beyond: 0 });
  assert.deepEqual(at(4, 0, 9), { from: 0, shown: [5, 3, 8, 1], beyond: 0 });
  assert.deepEqual(at(9, 0, 7), { from: 0, shown: rows, beyond: 0 });
});

test("where the library finds no push, no negative matters", () => {
  const bytes = (values) => new Uint8Array(Float32Array.from(values).buffer),
    M = Uint8Array.from(MASK);
  const of = (grad) =>
    library(M, 1, 4, { pair: bytes([0, 0.5, 0.3, 0.2]), grad: bytes(grad), loss: bytes([0]) }, { loss: 0 });
  const lab = { ...view(SCORES, MASK, { ...SOFTMAX, temperature: 0.5 }), kernel: null, value: 0.5 };
  for (const [grad, none] of [
    [[0, 0, 0, 0], true],
    [[-1, 0.4, 0.3, 0.3], false],
  ]) {
    // prettier-ignore
    const out = of(grad);
    assert.equal(out.effective[0] === 0, none);
    assert.equal(/No negative is pushed/.test(sentence({ ...lab, out })), none);
  }
});

test("a bar's words stand on one side of the margin's line", () => {
  for (const edge of [60, 126, 180, 296])
    for (const start of [10, 55, 62, 130]) {
      const [x, wide] = placeOf(start, edge, 300);
      assert.ok(x >= start && wide > 0);
      if (start < edge) assert.ok(x > edge || x + wide < edge, `${start} at ${edge}: ${x} + ${wide}`);
      assert.ok(x + wide <= 300);
    }
  assert.deepEqual(placeOf(10, NaN, 300), [10, 288]);
});

test("a share is all only where it is all", () => {
  const told = { 1: "100 %", 0.9999: "over 99 %", 0.994: "over 99 %", 0.99: "99 %", 0.07: "7 %", 0.001: "under 1 %" };
  for (const [x, text] of Object.entries(told)) assert.equal(percent(Number(x)), text);
  assert.equal(percent(0), "0 %");
});

test("a margin leaves alone what is farther", () => {
  const far = [0.2, 0.4, 0.9, 1.4];
  const told = (margin) => sentence(view(far, MASK, { ...PAIRS, margin }));
  assert.equal(told(0.5), "ε = 0.5: The loss pushes 1 of 3 negatives. The hardest is image 1.");
  assert.equal(told(1), "ε = 1: The loss pushes 2 of 3 negatives. The hardest is image 1.");
  assert.equal(told(2), "ε = 2: The loss pushes 3 of 3 negatives. The hardest is image 1.");
  assert.match(told(0.1), /^ε = 0\.1: None of the 3 negatives is close enough to be pushed/);
});

test("an anchor without a partner, or without negatives, says so", () => {
  const kernel = { ...SOFTMAX, temperature: 0.5 };
  assert.match(sentence(view(SCORES, [3, 2, 2, 2], kernel)), /^image 0 has no positive/);
  assert.match(sentence(view(SCORES, [1, 1, 3, 0], kernel)), /^image 0 has no negative/);
  assert.match(sentence(view(SCORES, [1, 2, 0, 3], kernel)), /The only negative, image 1, gets the whole push/);
});

test("a loss without negatives is said to pull only", () => {
  const lab = view([0.9, 0.8, 0.1, 0], MASK, { ...SOFTMAX, temperature: 0.5 });
  lab.kernel = null;
  lab.out.grad = Float32Array.from([-1, 0, 0, 0]); // as negative cosine has it
  assert.match(sentence(lab), /The loss pushes no negative of this batch: it only pulls positives together\.$/);
  lab.out.grad = new Float32Array(4);
  assert.match(sentence(lab), /it compares the dimensions of the whole batch\.$/); // Barlow Twins, VICReg, LeJEPA
  lab.out.loss = new Float32Array(1); // a hinge that is met
  assert.match(sentence(lab), /No negative is pushed: the positive is close enough\.$/);
});
