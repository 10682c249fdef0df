// The map of many points: the grid behind lasso and hover, the density, and rows and ids on their way.

import assert from "node:assert/strict";
import { test } from "node:test";

import { binned, strengths } from "../../contrastive_lab/components/scatter/density.js";
import {
  encloses,
  mixed,
  pointsInside,
  slicesIn,
  sortIntoCells,
} from "../../contrastive_lab/components/scatter/grid.js";
import { idOf, idsIn, rowsWithId } from "../../contrastive_lab/components/scatter/ids.js";
import { drawPoints } from "../../contrastive_lab/components/scatter/points.js";
import { besidePointer } from "../../contrastive_lab/components/scatter/tip.js";
import { clampedScale } from "../../contrastive_lab/components/scatter/view.js";
import { drawnPartners, partnerPaths } from "../../contrastive_lab/components/scatter/partners.js";
import { packRows, unpackRows } from "../../contrastive_lab/components/scatter/rows.js";
import { arranged, columnsFor, move } from "../../contrastive_lab/components/scatter/side_by_side.js";

/** Places that look random and are the same in every run. */
function places(n) {
  let seed = 7;
  return Float32Array.from({ length: 2 * n }, () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return (10 * seed) / 4294967296;
  });
}

const BOX = { x0: 0, y0: 0, span: 10 };
const STAR = [
  [1.3, 2.1],
  [9.7, 3.2],
  [2.2, 8.9],
  [5.1, 0.4],
  [8.3, 9.1],
]; // its edges cross each other

test("a mixed order has every point once and is not theirs", () => {
  const order = mixed(1000);
  assert.deepEqual(
    [...order].sort((a, b) => a - b),
    Array.from({ length: 1000 }, (_, i) => i),
  );
  assert.ok(order.filter((i, q) => i === q).length < 10);
});

test("cells hold every point once, where it is", () => {
  const xy = places(3000),
    cells = sortIntoCells(xy, BOX, mixed(3000));
  assert.equal(new Set(cells.order).size, 3000);
  for (let q = 0; q < 3000; q++) assert.equal(cells.xy[2 * q], xy[2 * cells.order[q]]);
  const found = new Set(),
    slices = slicesIn(cells, [2, 3, 4, 7]);
  for (let s = 0; s < slices.length; s += 2) for (let q = slices[s]; q < slices[s + 1]; q++) found.add(cells.order[q]);
  for (let i = 0; i < 3000; i++)
    if (xy[2 * i] >= 2 && xy[2 * i] <= 3 && xy[2 * i + 1] >= 4 && xy[2 * i + 1] <= 7) assert.ok(found.has(i));
  assert.ok(found.size < 200); // of the 90 in it, not of all
});

for (const n of [2000, 60_000])
  test(`a polygon encloses the points of ${n} that a look at each finds`, () => {
    const xy = places(n).map((v) => v * 1.2 - 1), // some lie beyond the square
      cells = sortIntoCells(xy, BOX, mixed(n));
    for (const path of [
      STAR,
      STAR.map(([x, y]) => [30 * x - 90, 30 * y - 90]),
      STAR.map(([x, y]) => [x / 50 + 4, y / 50 + 4]),
    ]) {
      const each = [...mixed(n)]
        .filter((i) => encloses(Float64Array.from(path.flat()), xy[2 * i], xy[2 * i + 1]))
        .sort((a, b) => a - b);
      assert.deepEqual(
        pointsInside(cells, path).sort((a, b) => a - b),
        each,
      );
    }
  });

test("places that are no numbers are in no polygon", () => {
  const cells = sortIntoCells(Float32Array.of(NaN, NaN, 5, 5), BOX, mixed(2));
  assert.deepEqual(
    pointsInside(cells, [
      [-90, -90],
      [90, -90],
      [90, 90],
      [-90, 90],
    ]),
    [1],
  );
});

test("a density counts what is shown, by pixel, with the mean of the colors", () => {
  const cells = sortIntoCells(Float32Array.of(0.5, 0.5, 0.6, 0.6, 0.7, 0.7, 3.5, 1.5, 99, 99), BOX, mixed(5)),
    category = [0, 1, 2, 1, 0];
  cells.color = Uint8Array.from(cells.order, (i) => category[i]);
  const look = { place: { scale: 1, x: 0, y: 4 }, width: 4, height: 4, colors: [[200, 0, 0], [0, 100, 0], null] };
  const { sums, rest } = binned(cells, [0, 5], { ...look, lit: null });
  assert.deepEqual([...sums.subarray(4 * 12, 4 * 12 + 4)], [200, 100, 0, 2]); // the third is hidden
  assert.deepEqual([...sums.subarray(4 * 11, 4 * 11 + 4)], [0, 100, 0, 1]);
  assert.equal(
    sums.filter((_, k) => k % 4 === 3).reduce((a, b) => a + b),
    3,
  ); // the last is out of view
  assert.equal(rest, null);
  const lit = binned(cells, [0, 5], { ...look, lit: Uint8Array.of(0, 1, 0, 0, 0) });
  assert.deepEqual([...lit.sums.subarray(4 * 12, 4 * 12 + 4)], [0, 100, 0, 1]);
  assert.deepEqual([...lit.rest.subarray(4 * 12, 4 * 12 + 4)], [200, 0, 0, 1]); // in its own color
  assert.equal(lit.rest[4 * 11 + 3], 1);
});

test("a pixel is the stronger the more points it has", () => {
  const of = strengths(Float32Array.of(0, 1, 10, 100), 1, 0);
  assert.equal(of(100), 1);
  assert.ok(of(1) > 0.2 && of(10) > of(1) && Math.abs(of(10) - (of(1) + of(100)) / 2) < 1e-6);
  assert.equal(strengths(Float32Array.of(1, 1), 1, 0)(1), 1);
  assert.equal(strengths(Float32Array.of(1, 9000), 1, 0)(9000), 1); // beyond the table
});

test("rows go as a list, as runs or as bits, and come back", () => {
  const n = 1_000_000,
    some = (step, count) => Array.from({ length: count }, (_, k) => k * step);
  assert.deepEqual(packRows([9, 4], n), { rows: [9, 4] });
  const run = packRows(some(1, n), n);
  assert.ok(run.runs.length < 20);
  assert.equal(unpackRows(run).length, n);
  const spread = packRows(some(2, n / 2), n);
  assert.ok(spread.bits.length < 170_000);
  assert.deepEqual(unpackRows(spread), some(2, n / 2));
  const two = [...some(1, 400), ...some(1, 400).map((i) => i + 5000)];
  assert.deepEqual(unpackRows(packRows(two, n)), two);
  assert.deepEqual(unpackRows({ runs: "AgAAAAMAAAAJAAAAAQAAAA==" }), [2, 3, 4, 9]); // as Python packs them
  assert.deepEqual(unpackRows(undefined), []);
});

test("ids are cut out of their bytes and looked for in them", () => {
  const names = ["a", "test/42", "42", "", "test/421", "äöü/7", "test/42"],
    ids = idsIn(new TextEncoder().encode(names.map((name) => `${name}\0`).join("")), names.length);
  names.forEach((name, i) => assert.equal(idOf(ids, i), name));
  assert.equal(idOf(ids, 99), "");
  assert.deepEqual(rowsWithId(ids, "42"), [2]);
  assert.deepEqual(rowsWithId(ids, "/42"), [1, 6]);
  assert.deepEqual(rowsWithId(ids, "est/4"), [1, 4, 6]);
  assert.deepEqual(rowsWithId(ids, "öü"), [5]);
  assert.deepEqual(rowsWithId(ids, "9"), []);
});

test("on a phone three maps stand below each other, four in two columns, each with its points", () => {
  const panels = {
    names: ["a", "b", "c"],
    at: [
      [0, 1],
      [2, 1],
      [4, 1],
    ],
    box: [-1, 5, -1, 1],
    rows: 1,
  };
  const { panels: stacked, moves } = arranged(panels, columnsFor(350, 3)),
    xy = Float32Array.of(0.5, 0.25, 2.5, 0.25, 4.5, 0.25);
  move(xy, 1, moves);
  const rounded = (values) => [...values].map((value) => Number(value.toFixed(2)));
  assert.deepEqual(rounded(xy), [0.5, 0.45, 0.5, -1.95, 0.5, -4.35]);
  assert.deepEqual(rounded(stacked.at.flat()), [0, 1.2, 0, -1.2, 0, -3.6]);
  assert.deepEqual([rounded(stacked.box), stacked.lines, stacked.cell], [[-1, 1, -6, 1.2], 3, 2]);
  assert.deepEqual([columnsFor(350, 4), columnsFor(900, 3)], [2, 0]);
  assert.deepEqual(arranged(panels, 0).panels.at, panels.at);
});

test("lines connect partners of shown categories, or those of the selection alone", () => {
  const map = /** @type {any} */ ({
    partners: Uint32Array.of(0, 2, 1, 3),
    picked: [],
    lit: Uint8Array.of(0, 0, 0, 1),
    hidden: new Set(),
    color: Uint8Array.of(0, 1, 2, 2),
    xy: Float32Array.of(0, 0, 1, 1, 2, 2, 3, 3),
    withLines: true,
  });
  assert.deepEqual(drawnPartners(map), [0, 2, 1, 3]);
  assert.deepEqual(drawnPartners({ ...map, picked: [3] }), [1, 3]);
  assert.deepEqual(drawnPartners({ ...map, hidden: new Set([0]) }), [1, 3]);
  assert.equal(partnerPaths(map, (x, y) => [x, y])[0].d, "M0.0 0.0L2.0 2.0M1.0 1.0L3.0 3.0");
  assert.deepEqual(
    partnerPaths({ ...map, withLines: false }, (x, y) => [x, y]),
    [],
  );
});

test("a card stands behind the pointer, or before it at the edge, and is never cut off", () => {
  assert.equal(besidePointer(100, 200, 800), 114);
  assert.equal(besidePointer(790, 200, 800), 576);
  assert.equal(besidePointer(60, 200, 240), 0);
});

test("the scale stays where something of the map is seen", () => {
  const map = /** @type {any} */ ({ whole: 10 });
  assert.equal(clampedScale(map, 1e-9), 8);
  assert.equal(clampedScale(map, 20), 20);
  assert.equal(clampedScale(map, 1e9), 5000);
});

test("what is not selected fades within 400 ms, and only then rests", (t) => {
  let now = 1000;
  t.mock.method(performance, "now", () => now);
  let frames = 0;
  Object.assign(globalThis, {
    devicePixelRatio: 1,
    requestAnimationFrame: () => ++frames,
    ImageData: class {
      constructor(width, height) {
        Object.assign(this, { width, height, data: new Uint8ClampedArray(4 * width * height) });
      }
    },
  });
  const nothing = () => {},
    context = { setTransform: nothing, clearRect: nothing, putImageData: nothing, font: "12px" },
    canvas = { clientWidth: 40, clientHeight: 20, getContext: () => context };
  const map = /** @type {any} */ ({
    canvas,
    stage: canvas,
    n: 2,
    view: { scale: 1, x: 0, y: 0 },
    meta: { palette: ["#ff0000"] },
    hidden: new Set(),
    picked: [1],
    lit: Uint8Array.of(0, 1),
    cells: { xy: Float32Array.of(10, -10, 30, -10), order: [0, 1], color: [0, 0] },
    selectedAt: now,
  });
  const alphas = () => {
    map.frame = frames = 0;
    drawPoints(map, [0, 2]);
    return [10, 30].map((x) => map.image.data[4 * (10 * 40 + x) + 3] / 255);
  };
  const near = (seen, wanted) => seen.forEach((alpha, k) => assert.ok(Math.abs(alpha - wanted[k]) < 0.01, `${seen}`));
  near(alphas(), [0.9, 0.9]);
  assert.equal(frames, 1);
  now += 200;
  near(alphas(), [0.6, 0.9]);
  now += 200;
  near(alphas(), [0.3, 0.9]);
  assert.equal(frames, 0);
  const red = [30, 27].map((x) => map.image.data[4 * (10 * 40 + x)]);
  assert.deepEqual(red, [255, 191]); // a rim of its own color, a quarter darker
});
