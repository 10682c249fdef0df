// Which rows are in view, and whose images the view lacks: the same ones as long as they are in view.

import { mixed } from "./grid.js";
import { want } from "./more.js";
import { view } from "./view.js";

export const MOST = 60; // images on the map, however near
const REST = 250; // milliseconds that the view has to rest

/**
 * Ask for the images that the view lacks once it rests.
 *
 * @param {ScatterState} map
 */
export function followView(map) {
  clearTimeout(map.resting);
  if (map.sprite && map.pictured && map.withImages)
    map.resting = setTimeout(() => map.root.isConnected && want(map, rowsInView(map, MOST)), REST);
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
  const isSeen = seenIn(map),
    rows = [];
  for (let q = 0; q < n && rows.length < most; q++) if (isSeen(row(q))) rows.push(row(q));
  return rows;
}

/**
 * Tell whether a point is on the stage now, and not hidden.
 *
 * @param {ScatterState} map
 * @returns {(i: number) => boolean}
 */
export function seenIn(map) {
  const v = view(map),
    { clientWidth, clientHeight } = map.stage;
  return (i) => {
    const x = map.xy[2 * i] * v.scale + v.x,
      y = v.y - map.xy[2 * i + 1] * v.scale;
    return x >= 0 && y >= 0 && x < clientWidth && y < clientHeight && !map.hidden.has(map.color[i]);
  };
}
