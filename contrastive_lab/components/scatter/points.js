// Points as pixels: 50,000 rectangles would take a canvas 50 ms.

import { view } from "./view.js";
import { GRAY, fromHex, packed, sizeCanvas } from "../shared/canvas.js";

const PALE = 0.22; // alpha of what is not selected

/**
 * @param {ScatterState} map
 */
export function pointSize(map) {
  return map.n > 20000 ? 2 : map.n > 5000 ? 3 : map.n > 2500 ? 5 : map.n > 1200 ? 6 : 7;
}

/** The pixels of a round point: their places and how much of each is covered. Small ones are square. */
function stamp(size) {
  const dx = [],
    dy = [],
    cover = [],
    round = size > 3,
    r = size / 2;
  for (let b = 0; b < size; b++)
    for (let a = 0; a < size; a++) {
      const c = round ? Math.min(1, Math.max(0, r - Math.hypot(a + 0.5 - r, b + 0.5 - r) + 0.5)) : 1;
      if (c > 0.1) {
        dx.push(a);
        dy.push(b);
        cover.push(c);
      }
    }
  return { size, dx: Int8Array.from(dx), dy: Int8Array.from(dy), cover };
}

/**
 * Points in a mixed order, so that no category covers the others, written into pixels (50,000 rectangles would take a
 * canvas 50 ms); where something is selected, first what is not, pale.
 *
 * @param {ScatterState} map
 */
export function drawPoints(map) {
  const [g] = sizeCanvas(map.canvas),
    v = view(map),
    dpr = devicePixelRatio || 1,
    some = map.picked.length > 0;
  const { width, height } = map.canvas,
    { xy, lit, order, color } = map,
    size = Math.round(pointSize(map) * dpr),
    half = size / 2;
  if (!width || !height) return;
  if (!map.image || map.image.width !== width || map.image.height !== height) map.image = new ImageData(width, height);
  if (map.dot?.size !== size) map.dot = stamp(size);
  const pixels = new Uint32Array(map.image.data.buffer).fill(0),
    scale = v.scale * dpr,
    vx = v.x * dpr - half,
    vy = v.y * dpr - half;
  const hides = map.meta.palette.map((_, k) => map.hidden.has(k));
  for (let pass = some ? 0 : 1; pass < 2; pass++) {
    const inks = map.meta.palette.map((hex) => inkOf(map.dot, ...(pass ? [fromHex(hex), 0.9] : [GRAY, PALE])));
    for (let q = 0; q < order.length; q++) {
      const i = order[q],
        k = color[i];
      if (hides[k] || (some && lit[i] !== pass)) continue;
      const x = Math.round(xy[2 * i] * scale + vx),
        y = Math.round(vy - xy[2 * i + 1] * scale);
      if (x <= -size || y <= -size || x >= width || y >= height) continue;
      if (size <= 3) fillSquare(pixels, width, height, x, y, size, inks[k].full);
      else putStamp(pixels, width, height, x, y, map.dot, inks[k]);
    }
  }
  g.putImageData(map.image, 0, 0);
}

/** A color for each pixel of a point, and where it is covered in full. */
function inkOf(dot, rgb, alpha) {
  return { rim: Uint32Array.from(dot.cover, (c) => packed(rgb, alpha * c)), full: packed(rgb, alpha) };
}

function fillSquare(pixels, width, height, x, y, size, color) {
  const right = Math.min(width, x + size),
    bottom = Math.min(height, y + size);
  for (let b = Math.max(0, y); b < bottom; b++)
    for (let a = Math.max(0, x); a < right; a++) pixels[b * width + a] = color;
}

/** A point's rim is drawn on empty pixels alone: over another point it is that point, or full. */
function putStamp(pixels, width, height, x, y, { dx, dy, cover }, { rim, full }) {
  for (let k = 0; k < dx.length; k++) {
    const a = x + dx[k],
      b = y + dy[k];
    if (a < 0 || b < 0 || a >= width || b >= height) continue;
    const at = b * width + a;
    if (!pixels[at]) pixels[at] = rim[k];
    else if (cover[k] > 0.5) pixels[at] = full;
  }
}
