// A line of images below the map: some of those in view, the same ones as long as they are in view.

import { idOf } from "./ids.js";
import { mixed } from "./grid.js";
import { want } from "./more.js";
import { imageOf, picture } from "./pictures.js";
import { choose } from "./selection.js";
import { schedule, view } from "./view.js";
import { drawGallery } from "../gallery/grid.js";

const SIDE = 40, // pixels along an image
  STEP = SIDE + 8; // from one to the next
const REST = 250; // milliseconds that the view has to rest

/**
 * Draw the line anew once the view rests.
 *
 * @param {ScatterState} map
 */
export function followView(map) {
  clearTimeout(map.resting);
  if (map.sprite && map.meta.gallery === false) map.resting = setTimeout(() => drawLine(map), REST);
}

/**
 * @param {ScatterState} map
 */
export function drawLine(map) {
  if (!map.root.isConnected || !map.stage.clientWidth || map.meta.gallery !== false) return;
  const seen = rowsInView(map, Math.floor(map.stage.clientWidth / STEP)),
    rows = seen.filter((i) => imageOf(map, i));
  want(map, seen);
  map.inView = rows;
  drawGallery(map.line, rows, {
    make: (i) => picture(map, i, SIDE),
    name: (i) => idOf(map.ids, i),
    point: (i) => {
      map.hover = i;
      schedule(map);
    },
    click: (i) => choose(map, [i]),
  });
}

/**
 * At most so many rows that have a point in view, those with an image in the map's own sheet first.
 *
 * @param {ScatterState} map
 * @param {number} most
 */
export function rowsInView(map, most) {
  const own = map.pictured ? map.pictured.length : map.rows;
  if (map.drawOrder?.length !== own) map.drawOrder = mixed(own);
  const rows = some(map, own, (q) => (map.pictured ? map.pictured[map.drawOrder[q]] : map.drawOrder[q]), most);
  if (!map.pictured || rows.length === most) return rows;
  return [...new Set([...rows, ...some(map, map.n, (q) => map.mixed[q] % map.rows, most)])].slice(0, most);
}

/**
 * The first of n rows that have a point in view.
 *
 * @param {ScatterState} map
 * @param {number} n
 * @param {(q: number) => number} row
 * @param {number} most
 */
function some(map, n, row, most) {
  const v = view(map),
    rows = [];
  for (let q = 0; q < n && rows.length < most; q++) {
    const i = row(q),
      x = map.xy[2 * i] * v.scale + v.x,
      y = v.y - map.xy[2 * i + 1] * v.scale;
    if (x >= 0 && y >= 0 && x < map.stage.clientWidth && y < map.stage.clientHeight && !map.hidden.has(map.color[i]))
      rows.push(i);
  }
  return rows;
}
