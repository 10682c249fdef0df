// Images on the map itself: each at the middle of a crowd of points, and more of them the nearer the map is looked at.
// They are drawn; a screen reader meets none of them.

import { MOST, rowsInView, seenIn } from "./in_view.js";
import { nearOf } from "./near.js";
import { imageOf } from "./pictures.js";
import { PALE } from "./points.js";
import { view } from "./view.js";
import { theme } from "../shared/canvas.js";

const SIDES = [24, 30]; // pixels along an image, on a stage less or more wide than
const NARROW = 500;
const CHOSEN = 2; // times as large is the image of the selected sample beside its nearest
const RING = 100; // pixels from it to the images of its nearest
const RIM = 2; // in its point's color
const GAP = 2 * RIM + 2; // between two of them, their rims included
const TURNS = 200; // of pushing apart
const NEARER = 1.5; // times as near as the whole map: others than the middles of crowds are shown too

/**
 * Where the legend lies on the stage, in its corner at the top right: from so far right, to so far down.
 *
 * @param {ScatterState} map
 */
export function legendCorner({ root, legend }) {
  const isOver = root.classList.contains("fits") && legend.offsetWidth;
  return isOver ? [legend.offsetLeft, legend.offsetTop + legend.offsetHeight] : [Infinity, 0];
}

/**
 * Places (2·m) of squares that lie as near as they can to where they belong, inside the stage, without overlap; NaN
 * for one that found no room. Two that overlap are pushed apart along the axis on which less is wanting.
 *
 * @param {ArrayLike<number>} wanted (2·m) their middles
 * @param {number[]} sides (m)
 * @param {number} width
 * @param {number} height
 * @param {number[]} corner that is kept free, as `legendCorner` gives it
 */
export function spread(wanted, sides, width, height, [left, bottom] = [Infinity, 0]) {
  const at = Float64Array.from(wanted),
    m = at.length / 2,
    room = [width, height];
  const keepInside = (i) => {
    const half = sides[i] / 2;
    for (let a = 0; a < 2; a++) at[2 * i + a] = Math.min(room[a] - half, Math.max(half, at[2 * i + a]));
    const over = at[2 * i] + half - left,
      under = bottom - (at[2 * i + 1] - half);
    if (over <= 0 || under <= 0) return;
    if (over < under) at[2 * i] -= over;
    else at[2 * i + 1] += under;
  };
  for (let i = 0; i < m; i++) keepInside(i);
  for (let turn = 0, moved = true; moved && turn < TURNS; turn++) {
    moved = false;
    for (let i = 0; i < m; i++)
      for (let j = i + 1; j < m; j++) {
        const side = (sides[i] + sides[j]) / 2, // no arrays here: a glide lays the images out in each frame
          across = side - Math.abs(at[2 * i] - at[2 * j]),
          down = side - Math.abs(at[2 * i + 1] - at[2 * j + 1]);
        if (across <= 1e-6 || down <= 1e-6) continue;
        const a = across === down ? (i + j) % 2 : Number(down < across),
          way = ((a ? down : across) / 2) * (at[2 * i + a] <= at[2 * j + a] ? -1 : 1);
        at[2 * i + a] += way;
        at[2 * j + a] -= way;
        keepInside(i);
        keepInside(j);
        moved = true;
      }
  }
  for (let i = 1; i < m; i++)
    for (let j = 0; j < i; j++)
      if ([0, 1].every((a) => Math.abs(at[2 * i + a] - at[2 * j + a]) < (sides[i] + sides[j]) / 2 - 0.5)) {
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
  return Boolean(map.sprite && medoids?.length && map.withImages);
}

/** The rows whose images are shown: the middles of crowds, and nearer by others in view. */
function pictured(map, nearness) {
  const near = nearOf(map);
  if (near) return [near.row, ...near.rows].filter((i) => imageOf(map, i) && !map.hidden.has(map.color[i]));
  const middles = map.meta.medoids.filter(nearness > NEARER ? seenIn(map) : (i) => !map.hidden.has(map.color[i]));
  if (nearness <= NEARER) return middles;
  const others = rowsInView(map, MOST).filter((i) => imageOf(map, i));
  return [...new Set([...middles, ...others])].slice(0, MOST);
}

/** Places of the images of the nearest: those whose points are close stand in a ring around the first, by direction. */
function around([first, ...others]) {
  const far = ([x, y]) => Math.hypot(x - first[0], y - first[1]),
    angle = ([x, y]) => Math.atan2(y - first[1], x - first[0]),
    close = others.filter((place) => far(place) < RING).sort((a, b) => angle(a) - angle(b)),
    turn = (k) => angle(close[0]) + (2 * Math.PI * k) / close.length;
  return [first, ...others].map((place) => {
    const k = close.indexOf(place);
    return k < 0 ? place : [first[0] + RING * Math.cos(turn(k)), first[1] + RING * Math.sin(turn(k))];
  });
}

/** Where the images are now, found anew when the view is another. */
function places(map) {
  const v = view(map),
    w = map.stage.clientWidth,
    h = map.stage.clientHeight,
    usual = SIDES[Number(w >= NARROW)],
    rows = pictured(map, v.scale / map.whole),
    chosen = nearOf(map)?.row,
    corner = legendCorner(map);
  const key = `${map.key} ${map.moves} ${v.scale} ${v.x} ${v.y} ${w} ${h} ${corner} ${rows}`;
  if (map.laidOut?.key !== key) {
    const points = rows.map((i) => [map.xy[2 * i] * v.scale + v.x, v.y - map.xy[2 * i + 1] * v.scale]),
      wanted = points.flat(),
      asked = rows[0] === chosen ? around(points).flat() : wanted,
      sides = rows.map((row) => (row === chosen ? CHOSEN * usual : usual)),
      room = sides.map((side) => side + GAP);
    map.laidOut = { key, rows, wanted, sides, at: spread(asked, room, w, h, corner) };
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
  const { rows, wanted, at, sides } = places(map),
    { palette } = map.meta,
    near = nearOf(map);
  g.lineWidth = 1;
  rows.forEach((row, k) => {
    const side = sides[k];
    if (near || Math.hypot(at[2 * k] - wanted[2 * k], at[2 * k + 1] - wanted[2 * k + 1]) < side / 2) return;
    g.strokeStyle = palette[map.color[row]];
    g.beginPath();
    g.moveTo(at[2 * k], at[2 * k + 1]);
    g.lineTo(wanted[2 * k], wanted[2 * k + 1]);
    g.stroke();
  });
  rows.forEach((row, k) => {
    const side = sides[k],
      x = Math.round(at[2 * k] - side / 2),
      y = Math.round(at[2 * k + 1] - side / 2);
    if (Number.isNaN(x)) return;
    const { sheet, parts, place } = imageOf(map, row),
      { tile, across } = parts;
    g.imageSmoothingEnabled = tile > side;
    g.globalAlpha = !map.picked.length || map.lit[row] ? 1 : PALE;
    g.fillStyle = row === near?.row ? theme(map.root).ink : palette[map.color[row]];
    g.fillRect(x - RIM, y - RIM, side + 2 * RIM, side + 2 * RIM);
    g.drawImage(sheet, (place % across) * tile, Math.floor(place / across) * tile, tile, tile, x, y, side, side);
  });
  g.globalAlpha = 1;
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
  const { rows, at, sides } = places(map),
    isOn = (q, side) => Math.abs(at[2 * q] - x) <= side / 2 && Math.abs(at[2 * q + 1] - y) <= side / 2;
  return rows.find((_, q) => isOn(q, sides[q])) ?? -1;
}

/**
 * The middle of a row's image on the stage; null where it has none there.
 *
 * @param {ScatterState} map
 * @param {number} row
 * @returns {[number, number] | null}
 */
export function imagePlace(map, row) {
  if (!areShown(map)) return null;
  const { rows, at } = places(map),
    k = rows.indexOf(row);
  return k < 0 || Number.isNaN(at[2 * k]) ? null : [at[2 * k], at[2 * k + 1]];
}

/**
 * The images on the stage as boxes, their rims included.
 *
 * @param {ScatterState} map
 */
export function imageBoxes(map) {
  if (!areShown(map)) return [];
  const { rows, at, sides } = places(map);
  return rows.map((_, k) => {
    const [x, y, half] = [at[2 * k], at[2 * k + 1], sides[k] / 2 + RIM];
    return { x0: x - half, x1: x + half, y0: y - half, y1: y + half };
  });
}
