// The images behind rows: all of them, or, of very many rows, those of `map.pictured` (ascending) and those that were
// brought since (more.js).

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
 * Where a row's image is, or null: the sheet, how that is divided, and the place in it.
 *
 * @param {ScatterState} map
 * @param {number} row
 */
export function imageOf(map, row) {
  const place = map.sprite ? tileOf(map, row) : -1;
  if (place >= 0) return { sheet: map.sprite, parts: map.meta.thumbnails, place };
  const parts = map.brought.find((some) => some.places.has(row));
  return parts ? { sheet: parts.sheet, parts, place: parts.places.get(row) } : null;
}

/**
 * @param {ScatterState} map
 * @param {number} i a point whose row has an image
 * @param {number} size
 */
export function picture(map, i, size) {
  const row = i % map.rows,
    { sheet, parts, place } = imageOf(map, row);
  return pictureOf(sheet, parts, place, size, idOf(map.ids, row));
}
