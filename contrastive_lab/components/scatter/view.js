// Where the map is looked at, and its next frame. `map.whole` is the scale at which all of it is seen.

const PLAIN = 40, // pixels at both edges together
  NAMED = 112,
  BAR = 56, // of the slider between maps, which lies on the stage, or of the strip of epochs
  TOP = 52; // of the tools and the legend above several maps

/** @param {ScatterState} map */
export function view(map) {
  const w = map.stage.clientWidth,
    { fits, panels } = map.meta,
    top = fits && panels && !panels.lines ? TOP : 0,
    h = map.stage.clientHeight - top - (fits && (map.target || map.meta.frameNames?.length) ? BAR : 0);
  if (!map.view) {
    const edges = map.meta.crowds?.length ? NAMED : PLAIN, // names stand above points
      scale = (map.whole = Math.min(Math.max(1, w - PLAIN) / map.box.wide, Math.max(1, h - edges) / map.box.high));
    map.view = {
      scale,
      x: w / 2 - (map.box.x0 + map.box.span / 2) * scale,
      y: top + h / 2 + (map.box.y0 + map.box.span / 2) * scale,
    };
  }
  return map.view;
}

const LIMITS = [0.8, 500]; // scales, as multiples of that of the whole map

/**
 * The nearest scale that still shows something of the map.
 *
 * @param {ScatterState} map
 * @param {number} scale
 */
export function clampedScale(map, scale) {
  return Math.min(LIMITS[1] * map.whole, Math.max(LIMITS[0] * map.whole, scale));
}

/**
 * All of the map again, as large as it fits; from here on it follows the size of its place.
 *
 * @param {ScatterState} map
 */
export function seeWhole(map) {
  map.view = null;
  map.moved = false;
  schedule(map, true);
}

/**
 * One redraw at the next frame; `stale`: the points too, not only what is drawn over them.
 *
 * @param {ScatterState} map
 * @param {boolean} [stale]
 */
export function schedule(map, stale) {
  map.stale ||= Boolean(stale);
  if (!map.frame)
    map.frame = requestAnimationFrame(() => {
      map.frame = 0;
      map.redraw();
    });
}

/** @param {ScatterState} map */
export function outline(map) {
  if (map.mode !== "box") return map.path;
  const [x0, y0] = map.path[0],
    [x1, y1] = map.path[map.path.length - 1];
  return [
    [x0, y0],
    [x1, y0],
    [x1, y1],
    [x0, y1],
  ];
}
