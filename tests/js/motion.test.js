// Bars and figures glide to new values; what is dragged follows at once.

import assert from "node:assert/strict";
import { test } from "node:test";

import { beginMotion, gliding } from "../../contrastive_lab/components/loss_view/motion.js";
import { hardestShares } from "../../contrastive_lab/components/loss_view/pushes.js";

test("a value glides for 400 ms from the one that was shown, unless something is dragged or motion is reduced", (t) => {
  let now = 0,
    isReduced = false;
  t.mock.method(performance, "now", () => now);
  globalThis.requestAnimationFrame = () => 1;
  globalThis.matchMedia = /** @type {any} */ (() => ({ matches: isReduced }));
  const lab = /** @type {any} */ ({}),
    show = (value) => gliding(lab, "loss", value);
  beginMotion(lab);
  assert.equal(show(1), 1); // nothing was shown before
  beginMotion(lab);
  assert.equal(show(3), 1);
  now = 200;
  assert.equal(show(3), 2);
  now = 400;
  assert.equal(show(3), 3);
  beginMotion(lab);
  lab.dragging = true;
  assert.equal(show(5), 5);
  lab.dragging = false;
  isReduced = true;
  beginMotion(lab);
  assert.equal(show(7), 7);
});

test("what the hardest negative gets: more where hard ones weigh more, all where it is the only one", () => {
  const S = Float32Array.of(1, 0.8, 0.7, 0.3, -0.2),
    M = Uint8Array.of(3, 1, 2, 2, 2),
    e = [0.7, 0.3, -0.2].map((s) => Math.exp(s / 0.5));
  const [plain, hard, decoupled] = hardestShares(S, M, { temperature: 0.5, beta: 1 });
  assert.ok(Math.abs(plain - e[0] / (e[0] + e[1] + e[2])) < 1e-6);
  assert.ok(Math.abs(decoupled - plain) < 1e-6);
  assert.ok(hard > plain);
  for (const share of hardestShares(S.slice(0, 3), M.slice(0, 3), null)) assert.ok(Math.abs(share - 1) < 1e-6);
});
