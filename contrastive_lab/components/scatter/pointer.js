// Pointer and keys on a map: pan, zoom, lasso, box, hover, and a walk from point to point.

import { hover, inside, shownRows } from "./find.js";
import { choose } from "./selection.js";
import { placeTip, tip } from "./tip.js";
import { clampedScale, outline, schedule, seeWhole, view } from "./view.js";
import { _ } from "../shared/locale.js";

/** @param {ScatterState} map */
export function listen(map) {
  const c = map.canvas;
  c.addEventListener(
    "wheel",
    (e) => {
      if (!e.ctrlKey && !e.metaKey) {
        map.missed = _("Hold Ctrl or ⌘ to zoom with the wheel");
        schedule(map);
        return; // the page scrolls; a pinch comes with Ctrl
      }
      e.preventDefault();
      zoom(map, e.offsetX, e.offsetY, Math.exp(-e.deltaY * 0.0015), e.timeStamp);
    },
    { passive: false },
  );
  c.onpointerdown = (e) => start(map, e);
  c.onpointermove = (e) => move(map, e);
  c.onpointerup = () => finish(map);
  c.onlostpointercapture = (e) => map.fingers.delete(e.pointerId);
  c.onpointercancel = () => {
    map.drag = map.path = null;
    schedule(map);
  };
  c.onpointerleave = () => {
    map.hover = -1;
    map.missed = "";
    map.tip.hidden = true;
    schedule(map);
  };
  c.ondblclick = () => seeWhole(map);
  c.onkeydown = (e) => keys(map, e);
}

function zoom(map, x, y, wanted, stamp) {
  const v = view(map),
    factor = clampedScale(map, v.scale * wanted) / v.scale;
  map.moved = true;
  map.missed = "";
  v.x = x - (x - v.x) * factor;
  v.y = y - (y - v.y) * factor;
  v.scale *= factor;
  map.pending ||= stamp || performance.now();
  schedule(map, true);
}

/**
 * Look at the middle of the stage from so many times as near.
 *
 * @param {ScatterState} map
 * @param {number} factor
 */
export function zoomBy(map, factor) {
  zoom(map, map.stage.clientWidth / 2, map.stage.clientHeight / 2, factor);
}

function start(map, e) {
  map.canvas.setPointerCapture(e.pointerId);
  map.fingers.set(e.pointerId, [e.offsetX, e.offsetY]);
  if (map.fingers.size > 1) {
    map.drag = map.path = null; // neither selects
    return;
  }
  map.drag = { x: e.offsetX, y: e.offsetY, pan: map.mode === "pan" || e.button === 1 || e.shiftKey };
  if (!map.drag.pan) map.path = [[e.offsetX, e.offsetY]];
}

/** Where the middle of two fingers is, and how far they are apart. */
function spanOf({ fingers }) {
  const [[x, y], [u, v]] = fingers.values();
  return [(x + u) / 2, (y + v) / 2, Math.hypot(x - u, y - v) || 1];
}

function move(map, e) {
  const isPinch = map.fingers.size === 2 && map.fingers.has(e.pointerId),
    [x0, y0, apart] = isPinch ? spanOf(map) : [0, 0, 1];
  if (map.fingers.has(e.pointerId)) map.fingers.set(e.pointerId, [e.offsetX, e.offsetY]);
  if (isPinch) {
    const v = view(map),
      [x, y, now] = spanOf(map);
    v.x += x - x0;
    v.y += y - y0;
    zoom(map, x, y, now / apart, e.timeStamp);
    return;
  }
  if (map.drag && map.drag.pan) {
    const v = view(map);
    v.x += e.offsetX - map.drag.x;
    v.y += e.offsetY - map.drag.y;
    map.moved = true;
    Object.assign(map.drag, { x: e.offsetX, y: e.offsetY });
    map.pending ||= e.timeStamp;
    schedule(map, true);
    return;
  }
  if (map.path) map.path.push([e.offsetX, e.offsetY]);
  else hover(map, e.offsetX, e.offsetY);
  schedule(map);
}

/** The end of a drag selects what it enclosed; a click selects the point under it. */
function finish(map) {
  const { path, drag } = map,
    moved = path && path.length > 2 && path.some(([x, y]) => Math.hypot(x - drag.x, y - drag.y) > 4);
  const area = moved ? outline(map) : null;
  map.drag = map.path = null;
  if (area) choose(map, inside(map, area));
  else if (drag && !drag.pan && map.hover >= 0) choose(map, [map.hover % map.rows]);
  schedule(map);
}

function keys(map, e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const v = view(map);
  const pan = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[e.key];
  if (pan) {
    v.x += pan[0];
    v.y += pan[1];
    map.moved = true;
    schedule(map, true);
  } else if (e.key === "+" || e.key === "=") zoomBy(map, 1.25);
  else if (e.key === "-") zoomBy(map, 0.8);
  else if (e.key === "Escape") choose(map, []);
  else if (e.key === "a") choose(map, shownRows(map));
  else if (e.key === "n" || e.key === "p") walk(map, e.key === "n" ? 1 : -1);
  else if (e.key === "Enter" && map.hover >= 0) choose(map, [map.hover % map.rows]);
  else return;
  e.preventDefault();
}

/** The next point (of the selection, if there is one), shown as if it were pointed at. */
function walk(map, step) {
  const rows = map.picked.length > 1 ? map.picked : null,
    count = rows ? rows.length : map.rows;
  if (!count) return;
  map.walked = ((((map.walked ?? (step > 0 ? -1 : 0)) + step) % count) + count) % count;
  const i = rows ? rows[map.walked] : map.walked,
    v = view(map);
  tip(map, i);
  placeTip(map, map.xy[2 * i] * v.scale + v.x, v.y - map.xy[2 * i + 1] * v.scale);
  schedule(map);
}
