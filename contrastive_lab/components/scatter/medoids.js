// Images on the map itself, each at the middle of a crowd of points, as long as the whole map is looked at and nothing
// is selected: nearer by, the image under the pointer takes over. They are drawn; a screen reader meets none of them.

import { tileOf } from "./pictures.js";
import { view } from "./view.js";

const SIDES = [24, 30]; // pixels along an image, on a stage less or more wide than
const NARROW = 500;
const RIM = 2; // in its point's color
const GAP = 2 * RIM + 2; // between two of them, their rims included
const TURNS = 200; // of pushing apart
const FAR = 1.5; // times as near as the whole map: no longer the whole map

/**
 * Places (2·m) of squares that lie as near as they can to where they belong, inside the stage, without overlap; NaN
 * for one that found no room. Two that overlap are pushed apart along the axis on which less is wanting.
 *
 * @param {ArrayLike<number>} wanted (2·m) their middles
 * @param {number} side
 * @param {number} width
 * @param {number} height
 */
export function spread(wanted, side, width, height) {
  const at = Float64Array.from(wanted),
    m = at.length / 2,
    room = [width, height];
  const keepInside = (k) => {
    const half = side / 2;
    at[k] = Math.min(room[k % 2] - half, Math.max(half, at[k]));
  };
  for (let k = 0; k < at.length; k++) keepInside(k);
  for (let turn = 0, moved = true; moved && turn < TURNS; turn++) {
    moved = false;
    for (let i = 0; i < m; i++)
      for (let j = i + 1; j < m; j++) {
        const want = [0, 1].map((a) => side - Math.abs(at[2 * i + a] - at[2 * j + a]));
        if (want[0] <= 1e-6 || want[1] <= 1e-6) continue;
        const a = want[0] === want[1] ? (i + j) % 2 : Number(want[1] < want[0]),
          toward = at[2 * i + a] <= at[2 * j + a] ? -1 : 1;
        at[2 * i + a] += (toward * want[a]) / 2;
        at[2 * j + a] -= (toward * want[a]) / 2;
        keepInside(2 * i + a);
        keepInside(2 * j + a);
        moved = true;
      }
  }
  for (let i = 1; i < m; i++)
    for (let j = 0; j < i; j++)
      if (Math.abs(at[2 * i] - at[2 * j]) < side - 0.5 && Math.abs(at[2 * i + 1] - at[2 * j + 1]) < side - 0.5) {
        at[2 * i] = at[2 * i + 1] = NaN;
        break;
      }
  return at;
}

/**
 * Whether the images are on the map now.
 *
 * @param {ScatterState} map
 */
function areShown(map) {
  const { medoids } = map.meta;
  return Boolean(
    map.sprite && medoids?.length && map.withImages && !map.picked.length && view(map).scale <= FAR * map.whole,
  );
}

/** Where the images are now, found anew when the view is another. */
function places(map) {
  const v = view(map),
    w = map.stage.clientWidth,
    h = map.stage.clientHeight,
    side = SIDES[Number(w >= NARROW)],
    rows = map.meta.medoids.filter((i) => !map.hidden.has(map.color[i]));
  const key = `${map.key} ${v.scale} ${v.x} ${v.y} ${w} ${h} ${rows}`;
  if (map.laidOut?.key !== key) {
    const wanted = rows.flatMap((i) => [map.xy[2 * i] * v.scale + v.x, v.y - map.xy[2 * i + 1] * v.scale]);
    map.laidOut = { key, rows, wanted, side, at: spread(wanted, side + GAP, w, h) };
  }
  return map.laidOut;
}

/**
 * The images, each with a rim in its point's color and, where it had to give way, a line to its point.
 *
 * @param {ScatterState} map
 * @param {CanvasRenderingContext2D} g
 */
export function drawMedoids(map, g) {
  if (!areShown(map)) return;
  const { rows, wanted, at, side } = places(map),
    { palette } = map.meta,
    { tile, across } = map.meta.thumbnails;
  g.lineWidth = 1;
  rows.forEach((row, k) => {
    if (Math.hypot(at[2 * k] - wanted[2 * k], at[2 * k + 1] - wanted[2 * k + 1]) < side / 2) return;
    g.strokeStyle = palette[map.color[row]];
    g.beginPath();
    g.moveTo(at[2 * k], at[2 * k + 1]);
    g.lineTo(wanted[2 * k], wanted[2 * k + 1]);
    g.stroke();
  });
  g.imageSmoothingEnabled = tile > side;
  rows.forEach((row, k) => {
    const x = Math.round(at[2 * k] - side / 2),
      y = Math.round(at[2 * k + 1] - side / 2);
    if (Number.isNaN(x)) return;
    g.fillStyle = palette[map.color[row]];
    g.fillRect(x - RIM, y - RIM, side + 2 * RIM, side + 2 * RIM);
    const place = tileOf(map, row);
    g.drawImage(map.sprite, (place % across) * tile, Math.floor(place / across) * tile, tile, tile, x, y, side, side);
  });
}

/**
 * The row whose image is at a place of the stage; −1 where there is none.
 *
 * @param {ScatterState} map
 * @param {number} x
 * @param {number} y
 */
export function medoidAt(map, x, y) {
  if (!areShown(map)) return -1;
  const { rows, at, side } = places(map),
    k = rows.findIndex((_, q) => Math.abs(at[2 * q] - x) <= side / 2 && Math.abs(at[2 * q + 1] - y) <= side / 2);
  return k < 0 ? -1 : rows[k];
}
