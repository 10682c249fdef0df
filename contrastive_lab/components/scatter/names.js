// Names of crowds on the map, each above one of its points and the images there; of two that overlap the larger crowd
// has its name, and none lies under the legend.

import { imageBoxes, legendCorner } from "./medoids.js";
import { view } from "./view.js";
import { theme } from "../shared/canvas.js";

const SIZE = 14, // pixels of the font
  AWAY = 10, // above the point
  LIFTS = 3; // over images, before a name is left out

/**
 * @param {ScatterState} map
 * @param {CanvasRenderingContext2D} g
 */
export function drawCrowds(map, g) {
  const v = view(map),
    { ink, paper } = theme(map.root),
    images = imageBoxes(map),
    [left, bottom] = legendCorner(map),
    taken = [{ x0: left, x1: Infinity, y0: -Infinity, y1: bottom }];
  g.font = `600 ${SIZE}px ${getComputedStyle(map.root).fontFamily}`;
  g.textAlign = "center";
  Object.assign(g, { lineWidth: 4, lineJoin: "round", strokeStyle: paper, fillStyle: ink });
  for (const { row, name } of map.meta.crowds ?? []) {
    if (map.hidden.has(map.color[row])) continue;
    const half = g.measureText(name).width / 2 + 4,
      x = map.xy[2 * row] * v.scale + v.x;
    let y = v.y - map.xy[2 * row + 1] * v.scale - AWAY;
    const covers = (box) => box.x0 < x + half && box.x1 > x - half && box.y0 < y + 4 && box.y1 > y - SIZE;
    for (let k = 0; k < LIFTS; k++) y = images.filter(covers).reduce((top, box) => Math.min(top, box.y0 - 6), y);
    if ([...images, ...taken].some(covers)) continue;
    taken.push({ x0: x - half, x1: x + half, y0: y - SIZE, y1: y + 4 });
    g.strokeText(name, x, y);
    g.fillText(name, x, y);
  }
  g.textAlign = "start";
}
