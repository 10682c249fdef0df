// An answer to an older report moves no slider of the circle, nor one that is in the hand.

import assert from "node:assert/strict";
import { test } from "node:test";

import { applyMeta } from "../../contrastive_lab/components/circle/main.js";
import { setKnob } from "../../contrastive_lab/components/shared/knob.js";
import { tellChosen } from "../../contrastive_lab/components/shared/part.js";

const control = (value) => ({ value, dataset: {}, setAttribute: () => {} });
const KNOB = { label: "temperature", low: 0, high: 1, log: false, value: 0.1 };
const answer = (heard) => ({ content: "one", heard, knob: KNOB, kernel: { knob: "temperature", temperature: 0.1 } });

test("what was let go last stays, whatever is on its way", () => {
  /** @type {any} */
  const ring = { name: "one", slider: control("100"), readout: control("0.1"), knobName: {}, reports: 0 };
  Object.assign(ring, {
    further: { names: "[]", values: {} },
    lesson: { lesson: null },
    send: () => {},
    meta: answer(0),
  });
  const seen = () => [ring.slider.value, ring.value, ring.kernel.temperature];
  applyMeta(ring, answer(0));
  assert.deepEqual(seen(), ["100", 0.1, 0.1]);
  for (const v of [0.2, 0.5, 0.8]) {
    ring.dragging = true;
    setKnob(ring, v);
    applyMeta(ring, answer(99));
    assert.deepEqual(seen(), [String(1000 * v), v, v]);
    tellChosen(ring, {});
    applyMeta(ring, answer(ring.reports - 1));
    assert.deepEqual(seen(), [String(1000 * v), v, v]);
  }
  applyMeta(ring, answer(ring.reports));
  assert.deepEqual(seen(), ["100", 0.1, 0.1]);
});
