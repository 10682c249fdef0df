// The nearest samples of the one that is selected, as the server says them (map_pictures/main.js).

export const TOLD = "contrastive-lab:near-told"; // an event of the window
const page = /** @type {any} */ (globalThis); // keeps what was said last: each part has modules of its own

/**
 * Say which rows are near: `key` of the map, `row`, and `rows` with their `similarity`, the nearest first.
 *
 * @param {any} said
 */
export function tellNear(said) {
  page[TOLD] = said;
  window.dispatchEvent(new CustomEvent(TOLD));
}

/**
 * What is near the selected sample; null while more or none are selected, or it is not known yet.
 *
 * @param {ScatterState} map
 */
export function nearOf(map) {
  const said = page[TOLD];
  return said?.key === map.key && map.picked.length === 1 && map.picked[0] === said.row ? said : null;
}
