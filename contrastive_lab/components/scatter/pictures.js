// The images behind rows: all of them, or, of very many rows, those of `map.pictured` (ascending).

import { idOf } from "./ids.js";
import { pictureOf } from "../gallery/grid.js";

/**
 * Where a row's image is in the sheet; −1 where it is not.
 *
 * @param {ScatterState} map
 * @param {number} row
 */
export function tileOf(map, row) {
  if (!map.pictured) return row;
  let low = 0,
    high = map.pictured.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (map.pictured[middle] === row) return middle;
    if (map.pictured[middle] < row) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

/**
 * @param {ScatterState} map
 * @param {number} i a point whose row has an image
 * @param {number} size
 */
export function picture(map, i, size) {
  const row = i % map.rows;
  return pictureOf(map.sprite, map.meta, tileOf(map, row), size, idOf(map.ids, row));
}
