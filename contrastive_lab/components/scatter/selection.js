// What is selected: lit on the map, shown as pictures, told to the server.

import { idOf } from "./ids.js";
import { picture, tileOf } from "./pictures.js";
import { drawGallery } from "../gallery/grid.js";
import { nearOf } from "./near.js";
import { packRows } from "./rows.js";
import { schedule } from "./view.js";
import { isStill } from "../shared/stage.js";

/**
 * @param {ScatterState} map
 * @param {number[]} rows
 */
export function light(map, rows) {
  if (!map.picked.length) map.selectedAt = isStill() ? -Infinity : performance.now();
  map.picked = rows;
  map.lit.fill(0);
  for (const row of [...rows, ...(nearOf(map)?.rows ?? [])]) for (let i = row; i < map.n; i += map.rows) map.lit[i] = 1;
  drawPictures(map);
  schedule(map, true);
}

/**
 * @param {ScatterState} map
 * @param {number[]} rows
 */
export function choose(map, rows) {
  map.missed = "";
  light(map, rows);
  map.send("selection", { ...packRows(rows, map.rows), turn: ++map.turn });
}

/** @param {ScatterState} map */
export function drawPictures(map) {
  drawGallery(
    map.gallery,
    map.sprite && map.meta.gallery !== false ? map.picked.filter((i) => tileOf(map, i) >= 0) : [],
    {
      make: (i) => picture(map, i, 56),
      name: (i) => idOf(map.ids, i),
      point: (i) => {
        map.hover = i;
        schedule(map);
      },
      click: (i) => choose(map, [i]),
    },
  );
}
