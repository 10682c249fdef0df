// Orders of the matrix: groups that came mixed stand together.

import assert from "node:assert/strict";
import { test } from "node:test";

import { clustersOf, orderOf } from "../../contrastive_lab/components/loss_view/order.js";

const GROUPS = 4;

/** Scores of n anchors with w candidates, 1 within a group and 0 outside it. */
function mixed(n, w) {
  const group = Array.from({ length: w }, (_, k) => (k * 7) % GROUPS);
  const S = Float32Array.from({ length: n * w }, (_, k) =>
    group[Math.floor(k / w)] === group[k % w] ? 1 - 0.001 * (k % 3) : 0.01 * (k % 5),
  );
  const names = Array.from({ length: w }, (_, k) => `row ${k}`);
  const meta = { names: names.slice(0, n), columnNames: names, scoreName: "similarity" };
  return { group, lab: { n, w, S, meta } };
}

for (const [n, w] of [
  [16, 16],
  [8, 16],
])
  test(`${n} anchors and ${w} candidates are clustered`, () => {
    const { group, lab } = mixed(n, w);
    const orders = clustersOf(lab);
    for (const [k, m] of [n, w].entries()) {
      const order = orders[k];
      assert.deepEqual(
        [...order].sort((a, b) => a - b),
        [...Array(m).keys()],
      );
      const changes = order.filter((row, at) => at > 0 && group[row] !== group[order[at - 1]]).length;
      assert.equal(changes, GROUPS - 1);
    }
  });

test("as they came, unless they are clustered; clusters are found once", () => {
  const { lab } = mixed(4, 8);
  /** @type {any} */
  const view = { ...lab, order: "group", cache: {} };
  assert.deepEqual(orderOf(view), [
    [0, 1, 2, 3],
    [0, 1, 2, 3, 4, 5, 6, 7],
  ]);
  view.order = "cluster";
  assert.equal(orderOf(view), orderOf(view));
});
