// Who is named as the hardest negative.

import assert from "node:assert/strict";
import { test } from "node:test";

import { shares } from "../../contrastive_lab/components/loss_view/gradients.js";
import { evaluate } from "../../contrastive_lab/components/shared/kernels.js";

/**
 * A view of one anchor with these squared distances: one positive, then negatives.
 *
 * @returns {any}
 */
function anchor(distances, kernel) {
  const S = Float32Array.from(distances);
  const M = Uint8Array.from(distances, (_, j) => (j ? 2 : 1));
  const out = evaluate(S, M, 1, S.length, kernel);
  return { anchor: 0, w: S.length, S, M, out, cache: {}, meta: { scoreName: "squared distance" } };
}

/** @type {Kernel} */
const TRIPLET = { family: "hinge", form: "triplet", knob: "margin", margin: 1.53, mining: "all", average: "all" };

test("where negatives are pushed alike, the nearest is the hardest", () => {
  const { hardest, total } = shares(anchor([0.5, 1.9, 0.4, 1.2, 2.5], TRIPLET));
  assert.equal(hardest, 2); // columns 1, 2 and 3 lie inside the margin, 2 is the nearest
  assert.ok(total > 0);
});

test("a negative that is pushed harder comes before a nearer one", () => {
  // semi-hard: only the nearest negative beyond the positive is pushed
  const { hardest } = shares(anchor([0.5, 1.9, 0.4, 1.2], { ...TRIPLET, mining: "semi_hard" }));
  assert.equal(hardest, 3);
});

test("no push, no hardest negative", () => {
  const { hardest, total } = shares(anchor([0.1, 3, 3.5], { ...TRIPLET, margin: 0.2 }));
  assert.equal(total, 0);
  assert.equal(hardest, undefined);
});
