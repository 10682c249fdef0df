// A knob's value in words and digits.

import assert from "node:assert/strict";
import { test } from "node:test";

import { fromSlider, knobText, rangeTold } from "../../contrastive_lab/components/shared/knob.js";

/** @type {any} */
const TEMPERATURE = { low: 0.01, high: 10, log: true };
/** @type {any} */
const MARGIN = { low: -0.5, high: 0.5, log: false };

test("a value is shown with all digits that the slider gives it", () => {
  for (let position = 0; position <= 1000; position += 7)
    for (const knob of [TEMPERATURE, MARGIN]) {
      const v = fromSlider(knob, position);
      assert.equal(Number(knobText(v)), v);
    }
  assert.equal(knobText(0.01995), "0.01995");
  assert.equal(knobText(0.1 + 0.2), "0.3");
  assert.equal(knobText(0.5), "0.5");
});

test("a typed value outside the range says the range", () => {
  assert.equal(rangeTold(MARGIN, -1), "The range is -0.5 to 0.5.");
  assert.equal(rangeTold(TEMPERATURE, 11), "The range is 0.01 to 10.");
  for (const v of [-0.5, 0, 0.5]) assert.equal(rangeTold(MARGIN, v), "");
});
