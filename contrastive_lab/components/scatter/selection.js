// What is selected: lit on the map, shown as pictures, told to the server.

import { drawGallery, pictureOf } from "../gallery/grid.js";
import { schedule } from "./view.js";

const FEW = 500; // rows that go back as a list; more go as one bit per point

/**
 * Row numbers as they are, or, where there are many, as base64 of one bit per point.
 *
 * @param {number[]} rows
 * @param {number} n
 */
export function packRows(rows, n) {
  if (rows.length <= FEW) return { rows };
  const bits = new Uint8Array(Math.ceil(n / 8));
  for (const i of rows) bits[i >> 3] |= 1 << (i & 7);
  let text = "";
  for (let k = 0; k < bits.length; k += 8192) text += String.fromCharCode(...bits.subarray(k, k + 8192));
  return { bits: btoa(text) };
}

/**
 * @param {ScatterState} map
 * @param {number[]} rows
 */
export function light(map, rows) {
  map.picked = rows;
  map.lit.fill(0);
  for (const row of rows) for (let i = row; i < map.n; i += map.rows) map.lit[i] = 1;
  drawPictures(map);
  schedule(map, true);
}

/**
 * @param {ScatterState} map
 * @param {number[]} rows
 */
export function choose(map, rows) {
  map.missed = "";
  light(map, rows);
  map.send(rows);
}

/**
 * @param {ScatterState} map
 * @param {number} i
 * @param {number} size
 */
export function picture(map, i, size) {
  return pictureOf(map.sprite, map.meta, i % map.rows, size, map.ids[i % map.rows] ?? "");
}

/**
 * @param {ScatterState} map
 */
export function drawPictures(map) {
  drawGallery(map.gallery, map.sprite && map.meta.gallery !== false ? map.picked : [], {
    make: (i) => picture(map, i, 56),
    name: (i) => map.ids[i] ?? String(i),
    point: (i) => {
      map.hover = i;
      schedule(map);
    },
    click: (i) => choose(map, [i]),
  });
}
