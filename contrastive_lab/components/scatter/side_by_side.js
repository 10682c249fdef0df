// Several maps of the same rows in one picture: point i shows row i % rows. What is selected in one
// is lit in all, and a slider moves every map's points to where the first map has them.

import { grid } from "./find.js";
import { placesIn } from "./grid.js";
import { theme } from "../shared/canvas.js";
import { el } from "../shared/dom.js";
import { _ } from "../shared/locale.js";

/**
 * The slider from the maps as they are (0) to all as the first (1).
 *
 * @param {ScatterState} map
 * @param {() => void} moved
 */
export function morphSlider(map, moved) {
  const slider = el("input", { type: "range", min: 0, max: 1, step: 0.01, value: 0 });
  const label = el("span", {}),
    box = el("label", { class: "morph", hidden: "" }, label, slider);
  slider.oninput = () => {
    morph(map, Number(slider.value));
    moved();
  };
  slider.onchange = () => {
    grid(map);
    moved();
  };
  Object.assign(box, { slider, label });
  return box;
}

/**
 * @param {ScatterState} map
 * @param {Uint8Array} target
 */
export function loadMorph(map, target) {
  map.home = map.xy.slice();
  map.target = target && target.length ? new Float32Array(target.slice().buffer) : null;
  map.morph.hidden = !map.target;
  map.morph.slider.value = 0;
  if (map.target) {
    map.morph.label.textContent = _("all placed as in {map}", { map: map.meta.panels.names[0] });
    map.morph.slider.setAttribute(
      "aria-label",
      _("from the maps as they are to all as {map}", { map: map.meta.panels.names[0] }),
    );
  }
}

const NARROW = 560; // pixels, below which maps stand below each other

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
  const moves = at.map(([x, y], k) => [(k % columns) * cell - x, (0.5 - Math.floor(k / columns)) * cell - y]);
  const lines = Math.ceil(at.length / columns);
  return {
    panels: {
      ...panels,
      cell,
      lines,
      at: at.map(([x, y], k) => [x + moves[k][0], y + moves[k][1]]),
      box: [-cell / 2, (columns - 0.5) * cell, (0.5 - lines) * cell, cell / 2],
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
  for (let k = 0; k < map.xy.length; k++) map.xy[k] = map.home[k] + share * (map.target[k] - map.home[k]);
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
  g.font = "600 13px sans-serif";
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
