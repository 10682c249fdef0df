// Where the map is looked at, and its next frame. `map.whole` is the scale at which all of it is seen.

/**
 * @param {ScatterState} map
 */
export function view(map) {
  const w = map.stage.clientWidth,
    h = map.stage.clientHeight;
  if (!map.view) {
    const scale = (map.whole = Math.min(Math.max(1, w - 40) / map.box.wide, Math.max(1, h - 40) / map.box.high));
    map.view = {
      scale,
      x: w / 2 - (map.box.x0 + map.box.span / 2) * scale,
      y: h / 2 + (map.box.y0 + map.box.span / 2) * scale,
    };
  }
  return map.view;
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

/**
 * @param {ScatterState} map
 */
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
