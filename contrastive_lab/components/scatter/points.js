// Points as pixels: 50,000 rectangles would take a canvas 50 ms. Of more in view a density is drawn (density.js).

import { schedule, view } from "./view.js";
import { fromHex, packed, sizeCanvas } from "../shared/canvas.js";
import { ease } from "../star/layout.js";

const RIM = { width: 0.75, light: 0.75 }; // of a point: pixels, and the part of its light
export const PALE = 0.3; // alpha of what is not selected
const FADE = 400; // milliseconds until it is
export const DENSE = 50_000; // points in view, above which their density is drawn

/** @param {ScatterState} map */
export function pointSize(map) {
  const n = map.n > DENSE ? map.shown : map.n; // of very many those in view
  const least = map.meta.palette.length > COLORS ? 5 : 2; // shapes need pixels
  return Math.max(n > 20000 ? 2 : n > 5000 ? 3 : n > 2500 ? 5 : n > 1200 ? 6 : 7, n > 20000 ? 2 : least);
}

export const COLORS = 8; // after which shapes take turns

const polygon =
  (...corners) =>
  (x, y, r) =>
    `M${corners.map(([a, b]) => [fixed(x + a * r), fixed(y + b * r)]).join("L")}Z`;
const fixed = (v) => Number(v.toFixed(2));

/** Shapes of points: how far out of the middle a place is, on the edge 1; the same in a legend, and as a path. */
const SHAPES = [
  {
    far: (x, y) => Math.hypot(x, y),
    clip: "circle(50%)",
    path: (x, y, r) => `M${fixed(x - r)},${fixed(y)}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
  },
  {
    far: (x, y) => Math.max(Math.max(Math.abs(x), Math.abs(y)), 3 * Math.min(Math.abs(x), Math.abs(y))),
    clip: "polygon(34% 0,66% 0,66% 34%,100% 34%,100% 66%,66% 66%,66% 100%,34% 100%,34% 66%,0 66%,0 34%,34% 34%)",
    path: polygon(
      ...[
        [-1, 3],
        [1, 3],
        [1, 1],
        [3, 1],
        [3, -1],
        [1, -1],
        [1, -3],
        [-1, -3],
        [-1, -1],
        [-3, -1],
        [-3, 1],
        [-1, 1],
      ].map(([a, b]) => [a / 3, b / 3]),
    ),
  },
  {
    far: (x, y) => Math.max(y, -0.5 * y + 0.9 * Math.abs(x)) / 0.75, // a triangle that points up
    clip: "polygon(50% 0, 100% 90%, 0 90%)",
    path: polygon([0, -1], [1, 0.8], [-1, 0.8]),
  },
  {
    far: (x, y) => 1.1 * Math.max(Math.abs(x), Math.abs(y)),
    clip: "inset(4%)",
    path: polygon([-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]),
  },
];

/**
 * The shape of a category's points: of more than eight categories some share a color.
 *
 * @param {number} k
 */
export function shapeOf(k) {
  return SHAPES[Math.floor(k / COLORS) % SHAPES.length];
}

/** The pixels of a point: their places and how much of each is covered, above 1 inside it. Small ones are square. */
function stamp(size, { far }) {
  const dx = [],
    dy = [],
    cover = [],
    r = size / 2;
  for (let b = 0; b < size; b++)
    for (let a = 0; a < size; a++) {
      const out = far((a + 0.5 - r) / r, (b + 0.5 - r) / r),
        c = size > 3 ? r - r * out + 0.5 : size;
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
 * @param {number[]} slices of map.cells
 */
export function drawPoints(map, slices) {
  const [g] = sizeCanvas(map.canvas),
    v = view(map),
    dpr = devicePixelRatio || 1,
    some = map.picked.length > 0;
  const { width, height } = map.canvas,
    { lit } = map,
    { xy, order, color } = map.cells,
    size = Math.round(pointSize(map) * dpr),
    half = size / 2;
  if (!width || !height) return;
  if (!map.image || map.image.width !== width || map.image.height !== height) map.image = new ImageData(width, height);
  if (map.dots?.[0].size !== size) map.dots = SHAPES.map((shape) => stamp(size, shape));
  const dots = map.meta.palette.map((_, k) => map.dots[SHAPES.indexOf(shapeOf(k))]);
  const pixels = new Uint32Array(map.image.data.buffer).fill(0),
    scale = v.scale * dpr,
    vx = v.x * dpr - half,
    vy = v.y * dpr - half;
  const hides = map.meta.palette.map((_, k) => map.hidden.has(k));
  const faded = ease((performance.now() - map.selectedAt) / FADE),
    pale = 0.9 + (PALE - 0.9) * faded;
  if (some && faded < 1) schedule(map, true);
  for (let pass = some ? 0 : 1; pass < 2; pass++) {
    const inks = map.meta.palette.map((hex, k) => inkOf(dots[k], fromHex(hex), pass ? 0.9 : pale));
    for (let s = 0; s < slices.length; s += 2)
      for (let q = slices[s]; q < slices[s + 1]; q++) {
        const k = color[q];
        if (hides[k] || (some && lit[order[q]] !== pass)) continue;
        const x = Math.round(xy[2 * q] * scale + vx),
          y = Math.round(vy - xy[2 * q + 1] * scale);
        if (x <= -size || y <= -size || x >= width || y >= height) continue;
        if (size <= 3) fillSquare(pixels, width, height, x, y, size, inks[k].square);
        else putStamp(pixels, width, height, x, y, dots[k], inks[k]);
      }
  }
  g.putImageData(map.image, 0, 0);
}

/** A color for each pixel of a point, as far as it is covered and in full, darker at its edge; and that of a square. */
function inkOf({ cover }, rgb, alpha) {
  const edge = 0.5 + RIM.width * devicePixelRatio,
    of = (c, a) => packed(c < edge ? rgb.map((v) => RIM.light * v) : rgb, a),
    part = Uint32Array.from(cover, (c) => of(c, alpha * Math.min(1, c)));
  return { part, whole: Uint32Array.from(cover, (c) => of(c, alpha)), square: packed(rgb, alpha) };
}

function fillSquare(pixels, width, height, x, y, size, color) {
  const right = Math.min(width, x + size),
    bottom = Math.min(height, y + size);
  for (let b = Math.max(0, y); b < bottom; b++)
    for (let a = Math.max(0, x); a < right; a++) pixels[b * width + a] = color;
}

/** A point's rim is drawn on empty pixels alone: over another point it is that point, or full. */
function putStamp(pixels, width, height, x, y, { dx, dy, cover }, { part, whole }) {
  for (let k = 0; k < dx.length; k++) {
    const a = x + dx[k],
      b = y + dy[k];
    if (a < 0 || b < 0 || a >= width || b >= height) continue;
    const at = b * width + a;
    if (!pixels[at]) pixels[at] = part[k];
    else if (cover[k] > 0.5) pixels[at] = whole[k];
  }
}
