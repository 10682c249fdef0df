// The bars beside the matrix: their length is the share that the sentence tells, on an axis that stays.

import assert from "node:assert/strict";
import { test } from "node:test";

import { drawBars } from "../../contrastive_lab/components/loss_view/bars.js";
import { steadyTop } from "../../contrastive_lab/components/loss_view/pairs.js";
import { shares } from "../../contrastive_lab/components/loss_view/gradients.js";
import { evaluate } from "../../contrastive_lab/components/shared/kernels.js";

const WIDTH = 400;

/** Lengths of the outlined bars (those of negatives), nearest first, and what is written at all bars. */
function drawn(kernel, more = {}) {
  const lengths = [],
    words = [],
    known = { font: "12px sans-serif", measureText: () => ({ width: 10 }) },
    quiet = new Proxy({}, { get: (_, name) => known[name] ?? (() => {}) }),
    context = new Proxy(quiet, {
      get: (target, name) =>
        name === "strokeRect"
          ? (x, y, width) => lengths.push(width + 2)
          : name === "fillText"
            ? (text) => words.push(text)
            : target[name],
      set: () => true,
    }),
    element = () => ({ setAttribute() {}, hasAttribute: () => true, textContent: "", children: [{}, {}] }),
    canvas = { ...element(), clientWidth: WIDTH, clientHeight: 220, width: 0, height: 0, getContext: () => context };
  const S = Float32Array.of(1, 0.8, 0.7, 0.3, -0.2, 0.1),
    M = Uint8Array.of(3, 1, 2, 2, 2, 2),
    out = evaluate(S, M, 1, 6, kernel);
  const names = ["a", "b", "c", "d", "e", "f"],
    meta = { names, columnNames: names, columnThumbs: [], scoreName: "similarity", lesson: {}, ...more };
  const lab = /** @type {any} */ ({
    S,
    M,
    n: 1,
    w: 6,
    out,
    kernel,
    meta,
    anchor: 0,
    view: "weight",
    share: true,
    cache: {},
  });
  Object.assign(lab, {
    bars: canvas,
    turns: element(),
    sharing: element(),
    barTitle: element(),
    barLegend: element(),
    lesson: {},
    stale: true,
    shown: {},
  });
  globalThis.devicePixelRatio = 1;
  drawBars(lab);
  return { lengths, words, share: shares(lab).curve[0] };
}

test("the hardest negative's bar has the length of its share at every temperature", () => {
  const kernel = { family: "softmax", denominator: "all", aggregate: "out", scale: "none", base: null, sign: 1 };
  const full = (WIDTH - 4) * 0.42;
  for (const temperature of [1, 0.2, 0.05]) {
    const { lengths, share } = drawn(/** @type {any} */ ({ ...kernel, temperature }));
    assert.ok(Math.abs(lengths[0] / full - share) < 1e-5, `${temperature}: ${lengths[0] / full}, ${share}`);
  }
});

test("a bar of a caption has its words, without the id that would cut them off", () => {
  const columnTexts = ["", "a red cross", "a blue ring", "", "", ""],
    kernel = { family: "softmax", denominator: "all", aggregate: "out", scale: "none", base: null, sign: 1 },
    { words } = drawn(/** @type {any} */ ({ ...kernel, temperature: 0.5 }), { columnTexts });
  assert.match(words[0], /^\+ .* {2}a red cross$/);
  assert.match(words[1], / % {2}a blue ring$/);
  assert.match(words[2], / % {2}d$/);
});

test("hard negatives that weigh more have longer bars", () => {
  const kernel = {
    family: "softmax",
    denominator: "own_positive",
    negatives: "hard",
    aggregate: "out",
    temperature: 0.5,
  };
  const [flat, hard] = [0, 2.4].map((beta) => drawn(/** @type {any} */ ({ ...kernel, tau_plus: 0.1, sign: 1, beta })));
  assert.ok(hard.lengths[0] > flat.lengths[0] + 20);
  assert.ok(hard.share > flat.share);
});

test("an axis without a bound grows while a knob is dragged and never shrinks", () => {
  const lab = /** @type {any} */ ({ anchor: 0, dragging: true });
  assert.deepEqual([2, 5, 1].map((most) => steadyTop(lab, "grad", most)), [2, 5, 5]); // prettier-ignore
  lab.dragging = false;
  assert.equal(steadyTop(lab, "grad", 1), 1);
});
