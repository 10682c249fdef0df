// Several maps of the same rows in one picture: point i shows row i % rows. What is selected in one
// is lit in all, and a slider moves every map's points to where the first map has them.

import { grid } from "./find.js";
import { schedule } from "./view.js";
import { placesIn } from "./grid.js";
import { theme } from "../shared/canvas.js";
import { el } from "../shared/dom.js";
import { onPointedAt } from "../shared/pointed_at.js";
import { isStill } from "../shared/stage.js";
import { ease } from "../star/layout.js";
import { _ } from "../shared/locale.js";

const MOVE = 700; // milliseconds from one end of the slider to the other

/**
 * The slider from the maps as they are (0) to all as the first (1), and a button that moves it there and back.
 *
 * @param {ScatterState} map
 * @param {() => void} moved
 */
export function morphSlider(map, moved) {
  const slider = el("input", { type: "range", min: 0, max: 1, step: 0.01, value: 0 }),
    play = el("button", { type: "button" }, "▶"),
    [before, after] = [0, 1].map(() => el("span", { "aria-hidden": "true" }));
  const show = (share) => {
    slider.value = String(share);
    morph(map, share);
    moved();
  };
  play.onclick = () => glide(map, Number(slider.value), show);
  slider.oninput = () => {
    map.gliding = null;
    show(Number(slider.value));
  };
  slider.onchange = () => rest(map);
  const stop = onPointedAt((key, row) => {
    if (!map.root.isConnected) stop();
    if (key !== map.key) return;
    map.hover = row;
    schedule(map);
  });
  const box = el("div", { class: "morph", hidden: "" }, play, before, slider, after);
  return Object.assign(box, { slider, play, before, after });
}

/**
 * From a share to the farther end, at once for those who want no motion; `then` is called at rest.
 *
 * @param {ScatterState} map
 * @param {number} from
 * @param {(share: number) => void} show
 * @param {() => void} [then]
 */
export function glide(map, from, show, then = () => {}) {
  const turn = (map.gliding = {}),
    to = from < 0.5 ? 1 : 0,
    begun = performance.now(),
    length = isStill() ? 1 : MOVE;
  const step = (now) => {
    if (map.gliding !== turn || !map.root.isConnected) return;
    const t = Math.min(1, Math.max(0, (now - begun) / length));
    show(from + (to - from) * ease(t));
    if (t < 1) return requestAnimationFrame(step);
    rest(map);
    then();
  };
  requestAnimationFrame(step);
}

/** Points that have moved are sorted into cells anew. */
function rest(map) {
  grid(map);
  schedule(map, true);
}

/**
 * @param {ScatterState} map
 * @param {Uint8Array} target
 */
export function loadMorph(map, target) {
  map.home = map.xy.slice();
  map.target = target && target.length ? new Float32Array(target.slice().buffer) : null;
  map.gliding = null;
  const { slider, play, before, after } = map.morph;
  map.morph.hidden = !map.target;
  slider.value = 0;
  if (!map.target) return;
  const { names } = map.meta.panels,
    shapes = names.map((name) => [...name][0]);
  before.textContent = shapes.join(" ");
  after.textContent = shapes.map(() => shapes[0]).join(" ");
  slider.title = _("every point at its place on {map}", { map: names[0] });
  slider.setAttribute("aria-label", _("move every point towards its place on {map}", { map: names[0] }));
  play.title = _("move every point to its place on {map}, and back", { map: names[0] });
  play.setAttribute("aria-label", play.title);
}

const NARROW = 560, // pixels, below which maps stand below each other
  NAMED = 1.2; // from one line of maps to the next, with a name between, in heights of a map

/**
 * How many maps a narrow screen has side by side; 0: as they were made.
 *
 * @param {number} width
 * @param {number} count
 */
export const columnsFor = (width, count) => (!width || width >= NARROW ? 0 : count > 3 ? 2 : 1);

/**
 * Maps arranged anew in some columns: the panels, and how far each map moves.
 *
 * @param {any} panels
 * @param {number} columns
 * @returns {{ panels: any, moves: number[][] }}
 */
export function arranged(panels, columns) {
  const { at, box } = panels,
    cell = (box[1] - box[0]) / new Set(at.map(([x]) => x)).size;
  if (!columns) return { panels: { ...panels, cell }, moves: [] };
  const high = (NAMED * (box[3] - box[2])) / new Set(at.map(([, y]) => y)).size,
    moves = at.map(([x, y], k) => [(k % columns) * cell - x, (0.5 - Math.floor(k / columns)) * high - y]);
  const lines = Math.ceil(at.length / columns);
  return {
    panels: {
      ...panels,
      cell,
      lines,
      at: at.map(([x, y], k) => [x + moves[k][0], y + moves[k][1]]),
      box: [-cell / 2, (columns - 0.5) * cell, (0.5 - lines) * high, high / 2],
    },
    moves,
  };
}

/**
 * Move each map's points.
 *
 * @param {Float32Array | null} xy
 * @param {number} rows of each map
 * @param {number[][]} moves
 */
export function move(xy, rows, moves) {
  if (!xy || !moves.length) return;
  for (let k = 0; k < xy.length; k++) xy[k] += moves[Math.floor(k / 2 / rows)][k % 2];
}

function morph(map, share) {
  placeBetween(map, map.home, map.target, share);
}

/**
 * Put every point between two places.
 *
 * @param {ScatterState} map
 * @param {Float32Array} from
 * @param {Float32Array} to
 * @param {number} share of the way
 */
export function placeBetween(map, from, to, share) {
  for (let k = 0; k < map.xy.length; k++) map.xy[k] = from[k] + share * (to[k] - from[k]);
  map.moves = (map.moves ?? 0) + 1;
  map.cells.xy = placesIn(map.cells, map.xy);
  map.cells.isStale = true; // points are in other cells than they were
}

/**
 * Each map's name above it, cut where it is wider than its map.
 *
 * @param {ScatterState} map
 * @param {CanvasRenderingContext2D} g
 * @param {any} v
 */
export function drawNames(map, g, v) {
  const { names, at, cell } = map.meta.panels,
    most = cell * v.scale - 8;
  g.fillStyle = theme(map.root).ink;
  g.font = `600 14px ${getComputedStyle(map.root).fontFamily}`;
  g.textAlign = "center";
  names.forEach((name, k) =>
    g.fillText(cut(g, name, most), at[k][0] * v.scale + v.x, Math.max(14, v.y - at[k][1] * v.scale)),
  );
}

function cut(g, name, most) {
  let text = name;
  for (let n = name.length - 1; n > 0 && g.measureText(text).width > most; n--) text = `${name.slice(0, n)}…`;
  return text;
}
