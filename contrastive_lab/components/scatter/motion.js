// Points move from where they were to where another map of the same rows has them.

import { glide, placeBetween } from "./side_by_side.js";
import { schedule } from "./view.js";

const MOST = 100_000; // points that move smoothly
const KEPT = 8; // maps whose places are kept
const last = new Map(); // by meta.rowsKey: places, and the box of their map

/**
 * Let the points of a new map come from where the last map of the same rows had them.
 *
 * @param {ScatterState} map
 */
export function glideFromLast(map) {
  const { rowsKey } = map.meta,
    before = last.get(rowsKey),
    to = map.xy.slice(),
    { x0, y0, span } = map.box;
  if (!rowsKey) return;
  last.delete(rowsKey);
  last.set(rowsKey, { xy: to, box: map.box });
  if (last.size > KEPT) last.delete(last.keys().next().value);
  if (before?.xy.length !== to.length || map.n > MOST) return;
  const { box } = before,
    from = before.xy.map((v, k) => (k % 2 ? y0 : x0) + ((v - (k % 2 ? box.y0 : box.x0)) / box.span) * span);
  const show = (share) => {
    placeBetween(map, from, to, share);
    schedule(map, true);
  };
  show(0);
  glide(map, 0, show);
}
