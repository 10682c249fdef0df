// Losses over dimensions against their formulas written out slowly. A browser test holds them to the library.

import assert from "node:assert/strict";
import { test } from "node:test";

import { notesOf, sentence } from "../../contrastive_lab/components/dimension_view/sentence.js";
import { cellByKey } from "../../contrastive_lab/components/dimension_view/matrices.js";
import {
  MOST_SHOWN,
  cosines,
  dimensionsOf,
  partOfCell,
  termsOf,
} from "../../contrastive_lab/components/shared/dimensions.js";
import { fromSlider, toSlider } from "../../contrastive_lab/components/shared/knob.js";

const near = (a, b) => assert.ok(Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(b)), `${a} is not ${b}`);
const sum = (values) => values.reduce((a, b) => a + b, 0);
const n = 7,
  d = 4;

function views(seed = 1) {
  let state = seed;
  const random = () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
  return Float32Array.from({ length: 2 * n * d }, () => 2 * random() - 1);
}

/** Column j of a view, and its mean. */
function column(Z, view, j) {
  const x = Array.from({ length: n }, (_, i) => Z[(2 * i + view) * d + j]);
  return x.map((v) => v - sum(x) / n);
}

const covariance = (x, y, count) => sum(x.map((v, i) => v * y[i])) / count;

test("the correlation is of a dimension of one view with a dimension of the other", () => {
  const Z = views(),
    found = dimensionsOf(Z, n, d, "correlation"),
    knobs = { off_diagonal: 0.3 };
  let on = 0,
    off = 0;
  for (let j = 0; j < d; j++)
    for (let k = 0; k < d; k++) {
      const x = column(Z, 0, j),
        y = column(Z, 1, k);
      const c = covariance(x, y, n) / Math.sqrt((covariance(x, x, n) + 1e-5) * (covariance(y, y, n) + 1e-5));
      near(found.matrices[0][j * d + k], c);
      if (j === k) on += (1 - c) ** 2;
      else off += c ** 2;
    }
  const [diagonal, rest] = termsOf(found, knobs);
  near(diagonal.part, on);
  near(rest.value, off);
  near(rest.part, 0.3 * off);
});

test("the parts of all cells are the terms of the matrix", () => {
  for (const form of /** @type {const} */ (["correlation", "covariance"])) {
    const found = dimensionsOf(views(), n, d, form),
      knobs = { off_diagonal: 0.2, invariance: 0, variance: 3, covariance: 2, deviation: 0.9 };
    let parts = 0;
    found.matrices.forEach((_, which) => {
      for (let j = 0; j < d; j++) for (let k = 0; k < d; k++) parts += partOfCell(found, knobs, which, j, k);
    });
    near(parts, sum(termsOf(found, knobs).map((term) => term.part)));
  }
});

test("of many dimensions those that vary most with others are shown, and the terms count all", () => {
  const images = 4,
    wide = MOST_SHOWN + 3,
    Z = new Float32Array(2 * images * wide);
  for (let i = 0; i < 2 * images; i++)
    for (let j = 0; j < wide; j++) Z[i * wide + j] = Math.sin(i * ((j % 50) + 1) + j);
  for (let i = 0; i < 2 * images; i++) for (const j of [0, 7, wide - 1]) Z[i * wide + j] = 1; // these vary with none
  for (const form of /** @type {const} */ (["correlation", "covariance"])) {
    const { shown, matrices, off, diagonals } = dimensionsOf(Z, images, wide, form);
    assert.deepEqual([shown.length, shown.includes(0), shown.includes(7)], [MOST_SHOWN, false, false]);
    const s = MOST_SHOWN;
    matrices.forEach((matrix, which) => near(matrix[5 * s + 5], diagonals[which][shown[5]]));
    let slow = 0; // the constant dimensions add nothing
    for (const matrix of matrices)
      for (let j = 0; j < s; j++) for (let k = 0; k < s; k++) if (j !== k) slow += matrix[j * s + k] ** 2;
    near(off, slow);
  }
});

test("cosines are of unit rows, and 0 of a row of zeros", () => {
  const S = cosines(Float32Array.from([3, 4, 6, 8, 0, 0, -4, 3]), 4, 2);
  assert.deepEqual(
    [...S.slice(0, 4)].map((s) => Math.round(1e6 * s) / 1e6),
    [1, 1, 0, 0],
  );
  assert.equal(S[10], 0);
});

test("weights of zero and more dimensions than images are told in one sentence each", () => {
  const weights = { invariance: 25, variance: 25, covariance: 1, deviation: 1 };
  const vicreg = { form: "covariance", n: 16, d: 8 };
  assert.deepEqual(notesOf(vicreg, weights), []);
  assert.match(notesOf(vicreg, { ...weights, variance: 0 }).join(), /^μ is 0/);
  assert.match(notesOf({ ...vicreg, d: 16 }, weights).join(), /16 dimensions but 16 images.*rank 15/);
  const none = { ...weights, invariance: 0, variance: 0, covariance: 0 };
  assert.equal(notesOf(vicreg, none).length, 1);
  const barlow = { form: "correlation", n: 16, d: 8 };
  assert.match(notesOf(barlow, { off_diagonal: 0 }).join(), /^λ is 0/);
  const terms = [{ key: "invariance", value: 2, weight: 0, part: 0 }];
  assert.match(sentence({ terms, found: vicreg, knobs: none }), /The loss is 0.*All three weights are 0/);
});

test("a slider from zero reaches zero, and small weights too", () => {
  const knob = { label: "λ", low: 0, high: 10, value: 1, log: true };
  assert.equal(fromSlider(knob, 0), 0);
  assert.equal(fromSlider(knob, 1000), 10);
  for (const v of [0.005, 0.1, 3]) assert.ok(Math.abs(fromSlider(knob, toSlider(knob, v)) / v - 1) < 0.02);
});

test("keys walk through the cells and stay within", () => {
  const matrix = { size: 5, hover: null };
  assert.deepEqual(cellByKey(matrix, "ArrowDown"), [0, 0]);
  matrix.hover = [4, 0];
  assert.deepEqual(cellByKey(matrix, "ArrowDown"), [4, 0]);
  assert.deepEqual(cellByKey(matrix, "ArrowRight"), [4, 1]);
  assert.deepEqual(cellByKey(matrix, "Home"), [0, 0]);
  assert.equal(cellByKey(matrix, "Tab"), null);
});
