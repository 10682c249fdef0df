// Words on the axes of the matrix: what differs between the rows is read, not what all begin with.

import assert from "node:assert/strict";
import { test } from "node:test";

import { distinct, stripOf, wordsOf } from "../../contrastive_lab/components/loss_view/axes.js";

test("the common start of texts goes, by whole words, unless nothing is left of one", () => {
  for (const [texts, left] of [
    [
      ["caption number 32", "caption number 119", "caption number 3"],
      ["32", "119", "3"],
    ],
    [
      ["caption number 1", "caption number 12", ""],
      ["1", "12", ""],
    ],
    [
      ["a photo", "a photo of a dog"],
      ["photo", "photo of a dog"],
    ],
    [
      ["\u7ea2\u8272\u5706\u5f62", "\u7ea2\u8272\u65b9\u5757"],
      ["\u5706\u5f62", "\u65b9\u5757"],
    ],
    [
      ["the same", "the same"],
      ["same", "same"],
    ],
    [
      ["\u7ea2", "\u7ea2\u8272"],
      ["\u7ea2", "\u7ea2\u8272"],
    ],
    [
      ["a/img_01.png", "a/img_02.png"],
      ["01.png", "02.png"],
    ],
    [["dog"], ["dog"]],
    [["", ""], ["", ""]], // prettier-ignore
  ])
    assert.deepEqual(distinct(texts), left);
});

/** Two images and their captions, without pictures. */
const META = {
  names: ["images 1", "images 2"],
  texts: [],
  rowThumbs: [],
  columnNames: ["texts 1", "texts 2"],
  columnTexts: ["a red disc", "a blue ring"],
  columnThumbs: [],
};

test("rows without texts have their names, and rows with pictures no words", () => {
  assert.deepEqual(wordsOf(META), [
    ["1", "2"],
    ["red disc", "blue ring"],
  ]);
  assert.deepEqual(wordsOf({ ...META, rowThumbs: [0, 1], columnThumbs: [-1, -1] }), [null, ["red disc", "blue ring"]]);
  assert.deepEqual(wordsOf({ ...META, columnTexts: [] })[1], ["1", "2"]);
  const queue = { ...META, columnTexts: [], rowThumbs: [0, 1], columnThumbs: [-1, -1] };
  assert.deepEqual(wordsOf(queue), [null, null]); // pictures of the rows have a narrow strip
  /** @type {any} */
  const lab = { meta: META, cache: {} };
  assert.equal(stripOf(lab, 1, 600), 112);
  assert.equal(stripOf({ ...lab, meta: queue, cache: {}, sprite: {} }, 1, 600), 22);
});
