// Which points: those near the pointer, within an outline, or with an id.

import { pointsInside, slicesIn, sortIntoCells } from "./grid.js";
import { rowsWithId } from "./ids.js";
import { medoidAt } from "./medoids.js";
import { choose } from "./selection.js";
import { placeTip, tip } from "./tip.js";
import { schedule, view } from "./view.js";
import { _ } from "../shared/locale.js";

/**
 * The box of all places that are shown: of the points as they are, or also of those they move to.
 *
 * @param {ScatterState} map
 * @param {Float32Array} [xy]
 */
export function bounds(map, xy = map.xy) {
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < xy.length / 2; i++) {
    const x = xy[2 * i],
      y = xy[2 * i + 1];
    if (x < x0) x0 = x;
    if (x > x1) x1 = x;
    if (y < y0) y0 = y;
    if (y > y1) y1 = y;
  }
  if (!(x1 >= x0 && y1 >= y0)) x0 = x1 = y0 = y1 = 0;
  if (map.meta.panels) [x0, x1, y0, y1] = map.meta.panels.box;
  const span = Math.max(x1 - x0, y1 - y0, 1e-9),
    wide = Math.max(x1 - x0, span / 8),
    high = Math.max(y1 - y0, span / 8);
  map.box = { x0: (x0 + x1 - span) / 2, y0: (y0 + y1 - span) / 2, span, wide, high };
}

/** @param {ScatterState} map */
export function grid(map) {
  map.cells = sortIntoCells(map.xy, map.box, map.mixed);
  colorCells(map);
}

/**
 * The categories in the order of the cells, when either is another.
 *
 * @param {ScatterState} map
 */
export function colorCells(map) {
  const { order } = map.cells,
    color = (map.cells.color = new Uint8Array(map.n));
  for (let q = 0; q < map.n; q++) color[q] = map.color[order[q]];
}

/**
 * The point whose image is there, or else the nearest within ten pixels, looked for in the cells that these touch.
 *
 * @param {ScatterState} map
 * @param {number} x
 * @param {number} y
 */
export function hover(map, x, y) {
  const v = view(map),
    px = (x - v.x) / v.scale,
    py = (v.y - y) / v.scale,
    reach = 10 / v.scale;
  let best = medoidAt(map, x, y),
    near = best < 0 ? reach * reach : 0;
  const { order, xy, color } = map.cells,
    slices = slicesIn(map.cells, [px - reach, px + reach, py - reach, py + reach]);
  for (let s = 0; s < slices.length; s += 2)
    for (let q = slices[s]; q < slices[s + 1]; q++) {
      const d = (xy[2 * q] - px) ** 2 + (xy[2 * q + 1] - py) ** 2;
      if (d < near && !map.hidden.has(color[q])) {
        near = d;
        best = order[q];
      }
    }
  if (best !== map.hover) tip(map, best);
  if (best >= 0) placeTip(map, x, y);
}

/**
 * The rows, ascending, of points that are shown and lie within an outline.
 *
 * @param {ScatterState} map
 * @param {number[][]} path on the stage
 */
export function inside(map, path) {
  const v = view(map),
    isIn = new Uint8Array(map.rows);
  for (const i of pointsInside(
    map.cells,
    path.map(([x, y]) => [(x - v.x) / v.scale, (v.y - y) / v.scale]),
  ))
    if (!map.hidden.has(map.color[i])) isIn[i % map.rows] = 1;
  return rowsIn(isIn);
}

/**
 * The rows that are not hidden, ascending.
 *
 * @param {ScatterState} map
 */
export function shownRows(map) {
  const isIn = new Uint8Array(map.rows);
  for (let i = 0; i < map.rows; i++) isIn[i] = Number(!map.hidden.has(map.color[i]));
  return rowsIn(isIn);
}

/** Where an array is not 0. */
function rowsIn(flags) {
  const rows = [];
  for (let i = 0; i < flags.length; i++) if (flags[i]) rows.push(i);
  return rows;
}

/**
 * Select what is searched for and bring it into view; where there is none, say so.
 *
 * @param {ScatterState} map
 * @param {string} text
 */
export function find(map, text) {
  map.missed = "";
  if (!text) {
    schedule(map);
    return;
  }
  const { hints } = map.meta,
    found = rowsWithId(map.ids, text),
    rows = found.length ? found : rowsSaying(hints, text);
  if (rows.length) {
    choose(map, rows);
    intoView(map, rows[0]);
  } else
    map.missed = hints.length ? _("no id or text contains {text}", { text }) : _("no id contains {text}", { text });
  schedule(map, true);
}

/** Rows of whose columns a value holds this text, in either case. */
function rowsSaying(hints, text) {
  const wanted = text.toLowerCase();
  return hints.flatMap((hint, i) => (hint.toLowerCase().includes(wanted) ? [i] : []));
}

/** Move the map, as it is zoomed, so that a row outside it is in its middle. */
function intoView(map, i) {
  const v = view(map),
    w = map.stage.clientWidth,
    h = map.stage.clientHeight;
  const x = map.xy[2 * i] * v.scale + v.x,
    y = v.y - map.xy[2 * i + 1] * v.scale;
  if (x > 0 && x < w && y > 0 && y < h) return;
  map.moved = true;
  v.x += w / 2 - x;
  v.y += h / 2 - y;
}
