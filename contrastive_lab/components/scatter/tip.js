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

/**
 * @param {ScatterState} map
 * @param {number} x
 * @param {number} y
 */
export function placeTip(map, x, y) {
  map.tip.style.left = `${Math.max(0, Math.min(x + 14, map.stage.clientWidth - 130))}px`;
  map.tip.style.top = `${Math.max(0, Math.min(y + 14, map.stage.clientHeight - 130))}px`;
}
