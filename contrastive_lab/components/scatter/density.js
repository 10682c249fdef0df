// Many points as a density: how many fall on each pixel. A pixel's color is the mean of its points' colors, and it is
// the stronger the more there are, by the logarithm of their number.

import { PALE } from "./points.js";
import { view } from "./view.js";
import { fromHex, sizeCanvas } from "../shared/canvas.js";

const FAINTEST = 0.4; // alpha of a pixel with one point
const TABLE = 4096; // numbers of points whose alpha is looked up

/**
 * Sums over the points of each pixel (4·width·height): red, green, blue and their number; with `lit`, those of the
 * points that are not lit in a second array.
 *
 * @param {any} cells as sortIntoCells gives them, with `color` (n) in the same order
 * @param {number[]} slices of them
 * @param {any} look `place` (scale, x, y), `width` and `height` in pixels, `colors` [r, g, b] of each category or null
 *   for a hidden one, `lit` (n) or null
 * @param {Uint32Array} [used] sums of before, written over where they have the same length
 */
export function binned(cells, slices, { place, width, height, colors, lit }, used) {
  const sums = used?.length === 4 * width * height ? used.fill(0) : new Uint32Array(4 * width * height),
    rest = lit ? new Uint32Array(sums.length) : null,
    shown = Uint8Array.from(colors, (c) => Number(c !== null)),
    channel = (a) => Uint32Array.from(colors, (c) => (c ? c[a] : 0)),
    [red, green, blue] = [channel(0), channel(1), channel(2)],
    { xy, color, order } = cells,
    { scale, x, y } = place;
  for (let s = 0; s < slices.length; s += 2)
    for (let q = slices[s]; q < slices[s + 1]; q++) {
      const k = color[q],
        px = xy[2 * q] * scale + x,
        py = y - xy[2 * q + 1] * scale;
      if (!shown[k] || !(px >= 0 && py >= 0 && px < width && py < height)) continue;
      const at = 4 * ((py | 0) * width + (px | 0)),
        into = rest && !lit[order[q]] ? rest : sums;
      into[at] += red[k];
      into[at + 1] += green[k];
      into[at + 2] += blue[k];
      into[at + 3]++;
    }
  return { sums, rest };
}

/**
 * The alpha of pixels by their number of points: from FAINTEST for one to 1 for the most of any.
 *
 * @param {ArrayLike<number>} counts
 * @param {number} step from one count to the next
 * @param {number} first
 */
export function strengths(counts, step, first) {
  let most = 1;
  for (let k = first; k < counts.length; k += step) if (counts[k] > most) most = counts[k];
  const of = (count) => (most > 1 ? FAINTEST + ((1 - FAINTEST) * Math.log(count)) / Math.log(most) : 1);
  const table = Float32Array.from({ length: Math.min(TABLE, most + 1) }, (_, count) => of(Math.max(1, count)));
  return (count) => (count < table.length ? table[count] : of(count));
}

/**
 * The density of what is in view, one pixel of the page as one.
 *
 * @param {ScatterState} map
 * @param {number[]} slices of map.cells
 */
export function drawDensity(map, slices) {
  sizeCanvas(map.canvas);
  const { width, height } = map.canvas,
    dpr = devicePixelRatio || 1,
    block = Math.max(1, Math.round(dpr)), // device pixels along a pixel of the density
    v = view(map);
  if (!width || !height) return;
  const across = Math.ceil(width / block),
    down = Math.ceil(height / block),
    zoom = dpr / block,
    look = {
      place: { scale: v.scale * zoom, x: v.x * zoom, y: v.y * zoom },
      width: across,
      height: down,
      colors: map.meta.palette.map((hex, k) => (map.hidden.has(k) ? null : fromHex(hex))),
      lit: map.picked.length ? map.lit : null,
    },
    { sums, rest } = binned(map.cells, slices, look, map.sums);
  map.sums = sums;
  if (map.image?.width !== width || map.image.height !== height) map.image = new ImageData(width, height);
  const pixels = new Uint32Array(map.image.data.buffer).fill(0),
    strong = strengths(sums, 4, 3),
    weak = rest && strengths(rest, 4, 3);
  for (let at = 0; at < across * down; at++) {
    const of = rest && !sums[4 * at + 3] ? rest : sums,
      count = of[4 * at + 3];
    if (!count) continue;
    const alpha = 255 * (of === rest ? PALE * weak(count) : strong(count)), // by hand: an array for each pixel
      red = of[4 * at] / count, // would double the time
      green = of[4 * at + 1] / count,
      blue = of[4 * at + 2] / count,
      ink = (alpha << 24) | (blue << 16) | (green << 8) | red;
    if (block === 1) pixels[at] = ink;
    else fill(pixels, width, height, (at % across) * block, Math.floor(at / across) * block, block, ink);
  }
  map.canvas.getContext("2d").putImageData(map.image, 0, 0);
}

function fill(pixels, width, height, x, y, block, ink) {
  for (let b = y; b < Math.min(height, y + block); b++)
    for (let a = x; a < Math.min(width, x + block); a++) pixels[b * width + a] = ink;
}
