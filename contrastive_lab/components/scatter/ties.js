// The nearest samples of the selected one on the map: their points stay lit, and lines tie them to it.

import { imagePlace } from "./medoids.js";
import { want } from "./more.js";
import { nearOf, TOLD } from "./near.js";
import { light } from "./selection.js";
import { view } from "./view.js";

const WIDTHS = [1, 5]; // pixels of the line to the least similar, and to the most similar

/**
 * Light the nearest as soon as they are known, as long as the map stands.
 *
 * @param {ScatterState} map
 * @returns {() => void} ends it
 */
export function receiveNear(map) {
  const take = () => {
    const near = nearOf(map);
    if (!near) return;
    want(map, near.rows);
    light(map, map.picked);
  };
  window.addEventListener(TOLD, take);
  return () => window.removeEventListener(TOLD, take);
}

/**
 * Lines from the selected sample to its nearest, as wide as they are similar.
 *
 * @param {ScatterState} map
 * @param {CanvasRenderingContext2D} g
 */
export function drawNear(map, g) {
  const near = nearOf(map);
  if (!near) return;
  const v = view(map),
    at = (row) => imagePlace(map, row) ?? [map.xy[2 * row] * v.scale + v.x, v.y - map.xy[2 * row + 1] * v.scale],
    [most, least] = [near.similarity[0], near.similarity[near.similarity.length - 1]];
  near.rows.forEach((row, k) => {
    if (map.hidden.has(map.color[row])) return;
    const share = most > least ? (near.similarity[k] - least) / (most - least) : 1;
    g.lineWidth = WIDTHS[0] + share * (WIDTHS[1] - WIDTHS[0]);
    g.strokeStyle = map.meta.palette[map.color[row]];
    g.beginPath();
    g.moveTo(...at(near.row));
    g.lineTo(...at(row));
    g.stroke();
  });
}
