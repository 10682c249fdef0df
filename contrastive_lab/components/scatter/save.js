// The map with its names and legend as a picture.

import { shapeOf } from "./points.js";
import { drawNames } from "./side_by_side.js";
import { view } from "./view.js";
import { theme } from "../shared/canvas.js";
import { offerPicture } from "../shared/download.js";

const MARK = 10; // pixels along a mark of the legend

/**
 * What a picture of the map is called, without its ending.
 *
 * @param {ScatterState} map
 */
export function fileName({ meta }) {
  return (meta.file || meta.title.toLowerCase()).replaceAll(/[^\w.-]+/g, "-");
}

/**
 * Points, names of maps and the legend as one picture.
 *
 * @param {ScatterState} map
 */
export function savePng(map) {
  const { ink, paper } = theme(map.root),
    dpr = devicePixelRatio || 1,
    { names, palette, title } = map.meta;
  const key = document.createElement("canvas"),
    both = document.createElement("canvas");
  both.width = key.width = map.canvas.width;
  both.height = map.canvas.height;
  const g = both.getContext("2d");
  g.drawImage(map.canvas, 0, 0);
  g.setTransform(dpr, 0, 0, dpr, 0, 0);
  if (map.meta.panels) drawNames(map, g, view(map));
  drawKey(
    key,
    names.map((name, k) => [name, palette[k], shapeOf(k)]).filter((_, k) => !map.hidden.has(k)),
    ink,
    dpr,
  );
  offerPicture([[both], [key]], paper, `${fileName(map)}.png`, title, ink);
}

/** The legend's entries, line by line, on a canvas that grows to hold them. */
function drawKey(canvas, entries, ink, dpr) {
  const g = canvas.getContext("2d"),
    wide = canvas.width / dpr,
    font = "12px 'Source Sans', sans-serif";
  g.font = font;
  let x = 4,
    y = 12;
  const at = entries.map(([name]) => {
    const w = g.measureText(name).width + 32;
    if (x > 4 && x + w > wide) {
      x = 4;
      y += 18;
    }
    const here = [x, y];
    x += w;
    return here;
  });
  canvas.height = (y + 10) * dpr;
  g.setTransform(dpr, 0, 0, dpr, 0, 0);
  g.font = font;
  g.textBaseline = "middle";
  entries.forEach(([name, color, shape], k) => {
    const [a, b] = at[k];
    g.fillStyle = color;
    drawShape(g, shape, a + MARK / 2, b, dpr);
    g.fillStyle = ink;
    g.fillText(name, a + 14, b + 1);
  });
}

/** A point's shape around a place, as large as a mark of the legend, pixel by pixel. */
function drawShape(g, { far }, x, y, dpr) {
  const r = MARK / 2;
  for (let b = -r; b < r; b += 1 / dpr)
    for (let a = -r; a < r; a += 1 / dpr) {
      const half = 0.5 / dpr;
      g.globalAlpha = Math.min(1, Math.max(0, dpr * (r - r * far((a + half) / r, (b + half) / r)) + 0.5));
      g.fillRect(x + a, y + b, 1 / dpr, 1 / dpr);
    }
  g.globalAlpha = 1;
}
