// A row of a map that another part points at; the two know each other by an event of the window alone.

const POINTED = "contrastive-lab:row-pointed-at";

/**
 * Show where a row stands on the map of this content; −1: nowhere.
 *
 * @param {string} key
 * @param {number} row
 */
export const pointAt = (key, row) => window.dispatchEvent(new CustomEvent(POINTED, { detail: { key, row } }));

/**
 * Listen until the returned function is called.
 *
 * @param {(key: string, row: number) => void} show
 * @returns {() => void}
 */
export function onPointedAt(show) {
  const take = (/** @type {any} */ { detail }) => show(detail.key, detail.row);
  window.addEventListener(POINTED, take);
  return () => window.removeEventListener(POINTED, take);
}
