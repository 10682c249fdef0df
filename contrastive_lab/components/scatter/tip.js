// What is told of the point under the pointer.

import { idOf } from "./ids.js";
import { picture, tileOf } from "./pictures.js";
import { el } from "../shared/dom.js";

/**
 * @param {ScatterState} map
 * @param {number} i
 */
export function tip(map, i) {
  map.hover = i;
  map.tip.hidden = i < 0;
  if (i < 0) return;
  const parts = map.sprite && tileOf(map, i % map.rows) >= 0 ? [picture(map, i, 72)] : [];
  map.tip.replaceChildren(
    ...parts,
    el("div", {}, idOf(map.ids, i % map.rows)),
    el("div", {}, map.meta.names[map.color[i]] ?? ""),
    el("div", { class: "hint" }, map.meta.hints[i % map.rows] ?? ""),
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
