// A line of images below the map: some of those in view, the same ones as long as they are in view.

import { idOf } from "./ids.js";
import { mixed } from "./grid.js";
import { picture } from "./pictures.js";
import { choose } from "./selection.js";
import { schedule, view } from "./view.js";
import { drawGallery } from "../gallery/grid.js";

const SIDE = 40, // pixels along an image
  STEP = SIDE + 8; // from one to the next
const REST = 250; // milliseconds that the view has to rest

/**
 * Draw the line anew once the view rests.
 *
 * @param {ScatterState} map
 */
export function followView(map) {
  clearTimeout(map.resting);
  if (map.sprite && map.meta.gallery === false) map.resting = setTimeout(() => drawLine(map), REST);
}

function drawLine(map) {
  if (!map.root.isConnected || !map.stage.clientWidth) return;
  const rows = rowsInView(map, Math.floor(map.stage.clientWidth / STEP));
  map.inView = rows;
  drawGallery(map.line, rows, {
    make: (i) => picture(map, i, SIDE),
    name: (i) => idOf(map.ids, i),
    point: (i) => {
      map.hover = i;
      schedule(map);
    },
    click: (i) => choose(map, [i]),
  });
}

/**
 * At most so many rows that have an image and a point in view.
 *
 * @param {ScatterState} map
 * @param {number} most
 */
export function rowsInView(map, most) {
  const v = view(map),
    rows = [],
    count = map.pictured ? map.pictured.length : map.rows;
  if (map.drawOrder?.length !== count) map.drawOrder = mixed(count);
  for (let q = 0; q < count && rows.length < most; q++) {
    const i = map.pictured ? map.pictured[map.drawOrder[q]] : map.drawOrder[q],
      x = map.xy[2 * i] * v.scale + v.x,
      y = v.y - map.xy[2 * i + 1] * v.scale;
    if (x >= 0 && y >= 0 && x < map.stage.clientWidth && y < map.stage.clientHeight && !map.hidden.has(map.color[i]))
      rows.push(i);
  }
  return rows;
}
