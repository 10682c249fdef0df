// What is told of the point under the pointer.

import { idOf } from "./ids.js";
import { want } from "./more.js";
import { imageOf, picture } from "./pictures.js";
import { el } from "../shared/dom.js";

const REST = 150; // milliseconds that the pointer has to rest on a point without an image

/**
 * @param {ScatterState} map
 * @param {number} i
 */
export function tip(map, i) {
  map.hover = i;
  map.tip.hidden = i < 0;
  clearTimeout(map.dwelling);
  if (i < 0) return;
  const row = i % map.rows,
    parts = imageOf(map, row) ? [picture(map, i, 72)] : [];
  if (!parts.length) map.dwelling = setTimeout(() => want(map, [row]), REST);
  map.tip.replaceChildren(
    ...parts,
    el("div", {}, idOf(map.ids, row)),
    el("div", {}, map.meta.names[map.color[i]] ?? ""),
    el("div", { class: "hint" }, map.meta.hints[row] ?? ""),
  );
}

const AWAY = 14; // pixels from the pointer

/**
 * Where the card begins along one side of the stage: behind the pointer, or before it where it would be cut off.
 *
 * @param {number} pointer
 * @param {number} size of the card
 * @param {number} room
 */
export function besidePointer(pointer, size, room) {
  const behind = pointer + AWAY;
  return Math.max(0, behind + size <= room ? behind : Math.min(pointer - AWAY - size, room - size));
}

/**
 * @param {ScatterState} map
 * @param {number} x
 * @param {number} y
 */
export function placeTip(map, x, y) {
  const { clientWidth, clientHeight } = map.stage;
  map.tip.style.left = `${besidePointer(x, map.tip.offsetWidth, clientWidth)}px`;
  map.tip.style.top = `${besidePointer(y, map.tip.offsetHeight, clientHeight)}px`;
}
