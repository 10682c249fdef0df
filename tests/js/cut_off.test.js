// An answer of the server moves the cut-off's handle only where it is news.

import assert from "node:assert/strict";
import { test } from "node:test";

import { heard } from "../../contrastive_lab/components/cut_off/main.js";

const handle = (value, more = {}) => ({ given: 25, sent: [], held: false, input: { value }, ...more });

test("what the page decides moves the handle", () => {
  for (const cut of [0, 3, 50]) {
    const view = handle(25);
    heard(view, cut);
    assert.equal(view.input.value, cut);
  }
});

test("answers to what was reported move nothing, however late they come", () => {
  const view = handle(14, { sent: [3, 9, 14] });
  for (const cut of [25, 3, 9, 14]) {
    heard(view, cut);
    assert.equal(view.input.value, 14, `after ${cut}`);
  }
  assert.deepEqual(view.sent, []);
  heard(view, 14); // drawn again with nothing new
  heard(view, 25);
  assert.equal(view.input.value, 25);
});

test("one answer may stand for several reports", () => {
  const view = handle(14, { sent: [3, 9, 14] });
  heard(view, 14);
  assert.deepEqual(view.sent, []);
});

test("a handle that is held is not moved", () => {
  const view = handle(7, { held: true });
  heard(view, 3);
  assert.equal(view.input.value, 7);
});
