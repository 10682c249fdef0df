// Images of points that have none in the map's own sheet. They are asked for where the pointer or the view rests, and
// brought by another part (map_pictures/main.js); the two know each other by events of the window alone.

import { imageOf } from "./pictures.js";

export const WANTED = "contrastive-lab:images-wanted";
export const BROUGHT = "contrastive-lab:images-brought";
const MOST = 96; // at a time
const SHEETS = 30; // that are kept, the newest first

/**
 * Ask for the images of those rows that have none yet, and for what is still outstanding.
 *
 * @param {ScatterState} map
 * @param {number[]} rows
 */
export function want(map, rows) {
  if (!map.pictured || !map.sprite) return;
  const lacking = rows.filter((i) => !imageOf(map, i));
  if (!lacking.length) return;
  map.wanted = [...new Set([...lacking, ...map.wanted])].filter((i) => !imageOf(map, i)).slice(0, MOST);
  window.dispatchEvent(new CustomEvent(WANTED, { detail: { key: map.key, rows: map.wanted } }));
}

/**
 * Take what is brought, as long as the map stands.
 *
 * @param {ScatterState} map
 * @param {() => void} show called when there are more images
 * @returns {() => void} ends it
 */
export function receive(map, show) {
  const take = (/** @type {any} */ { detail }) => {
    if (detail.key !== map.key || detail.rows.every((i) => imageOf(map, i))) return;
    map.brought = [detail, ...map.brought].slice(0, SHEETS);
    map.wanted = map.wanted.filter((i) => !imageOf(map, i));
    show();
  };
  window.addEventListener(BROUGHT, take);
  return () => window.removeEventListener(BROUGHT, take);
}
