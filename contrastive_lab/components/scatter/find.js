// Which points: those near the pointer, within an outline, or with an id.

import { medoidAt } from "./medoids.js";
import { choose } from "./selection.js";
import { placeTip, tip } from "./tip.js";
import { schedule, view } from "./view.js";

const CELL = 64; // cells along each side of the grid that finds the nearest point

/**
 * @param {ScatterState} map
 */
export function bounds(map) {
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < map.n; i++) {
    const x = map.xy[2 * i],
      y = map.xy[2 * i + 1];
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

/**
 * @param {ScatterState} map
 */
export function grid(map) {
  map.cells = Array.from({ length: CELL * CELL }, () => []);
  for (let i = 0; i < map.n; i++)
    map.cells[rowOf(map, map.xy[2 * i + 1]) * CELL + columnOf(map, map.xy[2 * i])].push(i);
}

/**
 * All points, each once, in an order that is always the same and has nothing to do with theirs.
 *
 * @param {number} n
 */
export function mixed(n) {
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1, seed = 1; i > 0; i--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((seed / 4294967296) * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

const clamp = (k) => Math.min(CELL - 1, Math.max(0, k || 0));

function columnOf(map, x) {
  return clamp(Math.floor(((x - map.box.x0) / map.box.span) * CELL));
}

function rowOf(map, y) {
  return clamp(Math.floor(((y - map.box.y0) / map.box.span) * CELL));
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
  for (let q = rowOf(map, py - reach); q <= rowOf(map, py + reach); q++) {
    for (let p = columnOf(map, px - reach); p <= columnOf(map, px + reach); p++) {
      for (const i of map.cells[q * CELL + p]) {
        const d = (map.xy[2 * i] - px) ** 2 + (map.xy[2 * i + 1] - py) ** 2;
        if (d < near && !map.hidden.has(map.color[i])) {
          near = d;
          best = i;
        }
      }
    }
  }
  if (best !== map.hover) tip(map, best);
  if (best >= 0) placeTip(map, x, y);
}

/**
 * @param {ScatterState} map
 * @param {number[][]} path
 */
export function inside(map, path) {
  const v = view(map),
    found = [],
    xs = path.map((q) => q[0]),
    ys = path.map((q) => q[1]);
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  for (let i = 0; i < map.n; i++) {
    const x = map.xy[2 * i] * v.scale + v.x,
      y = v.y - map.xy[2 * i + 1] * v.scale;
    if (x < x0 || x > x1 || y < y0 || y > y1 || map.hidden.has(map.color[i])) continue;
    let odd = false;
    for (let a = 0, b = path.length - 1; a < path.length; b = a++) {
      if (ys[a] > y !== ys[b] > y && x < ((xs[b] - xs[a]) * (y - ys[a])) / (ys[b] - ys[a]) + xs[a]) odd = !odd;
    }
    if (odd) found.push(i);
  }
  return found;
}

/** Rows with this id, or else those whose id ends in it, or else holds it. */
function withId(map, text) {
  const ids = map.ids,
    rows = Array.from({ length: map.rows }, (_, i) => i);
  for (const fits of [(id) => id === text, (id) => id.endsWith(text), (id) => id.includes(text)]) {
    const found = rows.filter((i) => fits(ids[i]));
    if (found.length) return found;
  }
  return [];
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
  const rows = withId(map, text);
  if (rows.length) {
    choose(map, rows);
    intoView(map, rows[0]);
  } else map.missed = `no id holds ${text}`;
  schedule(map, true);
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
