// How pull and push look, in every drawing: what is pulled is blue and filled, and its arrows lead inward; what is
// pushed is orange and hollow, and its arrows lead outward. Positives look like what is pulled, negatives like what is
// pushed: so they differ in color and in shape.

import { BLUE, ORANGE, rgb } from "./canvas.js";
import { el } from "./dom.js";

/** @typedef {{ color: number[], hollow: boolean }} Look */

/** @type {Look} */
export const PULL = { color: BLUE, hollow: false };
/** @type {Look} */
export const PUSH = { color: ORANGE, hollow: true };

/** Pixels of a cell's side: the middle one of a hollow cell is left out. */
export const GRAIN = 3;

const INSIDE = 0.2; // alpha within a hollow shape
const LEAST = 4; // pixels: what is thinner has no inside
const SLANT = 0.5; // radians between an arrow's line and the sides of its head

/**
 * A bar to the right of x.
 *
 * @param {CanvasRenderingContext2D} g
 * @param {Look} look
 * @param {[number, number, number, number]} box x, y, width, height
 * @param {number} [alpha]
 */
export function bar(g, look, [x, y, width, height], alpha = 1) {
  if (look.hollow && width >= LEAST) {
    g.fillStyle = rgb(look.color, INSIDE * alpha);
    g.fillRect(x, y, width, height);
    g.strokeStyle = rgb(look.color, alpha);
    g.lineWidth = 2;
    g.strokeRect(x + 1, y + 1, width - 2, height - 2);
    return;
  }
  g.fillStyle = rgb(look.color, alpha);
  g.fillRect(x, y, width, height);
}

/**
 * The area under a line, as of a histogram.
 *
 * @param {CanvasRenderingContext2D} g
 * @param {Look} look
 * @param {number[][]} outline
 */
export function area(g, look, outline) {
  g.beginPath();
  outline.forEach(([x, y], k) => (k ? g.lineTo(x, y) : g.moveTo(x, y)));
  g.closePath();
  ink(g, look, look.hollow, 0.7);
}

/**
 * A bar with a point: to the anchor at its left where it is pulled, away from it where it is pushed.
 *
 * @param {CanvasRenderingContext2D} g
 * @param {Look} look
 * @param {[number, number, number, number]} box x, y, width, height
 */
export function pointedBar(g, look, [x, y, width, height]) {
  const tip = Math.min(height / 2, width),
    [start, end] = look.hollow ? [x + width, x] : [x, x + width],
    inward = look.hollow ? -tip : tip;
  g.beginPath();
  g.moveTo(start, y + height / 2);
  g.lineTo(start + inward, y);
  g.lineTo(end, y);
  g.lineTo(end, y + height);
  g.lineTo(start + inward, y + height);
  g.closePath();
  ink(g, look, look.hollow && width >= LEAST);
}

/**
 * An arrow from (x, y) by (dx, dy).
 *
 * @param {CanvasRenderingContext2D} g
 * @param {Look} look
 * @param {[number, number]} from
 * @param {[number, number]} by
 */
export function arrow(g, look, [x, y], [dx, dy]) {
  const length = Math.hypot(dx, dy),
    a = Math.atan2(dy, dx),
    head = Math.min(9, length / 2),
    ex = x + dx,
    ey = y + dy,
    neck = head * Math.cos(SLANT);
  g.strokeStyle = rgb(look.color);
  g.lineWidth = 1.8;
  g.beginPath();
  g.moveTo(x, y);
  g.lineTo(ex - neck * Math.cos(a), ey - neck * Math.sin(a));
  g.stroke();
  g.beginPath();
  g.moveTo(ex, ey);
  for (const side of [SLANT, -SLANT]) g.lineTo(ex - head * Math.cos(a + side), ey - head * Math.sin(a + side));
  g.closePath();
  ink(g, look, look.hollow);
}

/** The path, filled or as an outline. */
function ink(g, { color }, hollow, alpha = 1) {
  g.fillStyle = rgb(color, hollow ? INSIDE : alpha);
  g.fill();
  if (!hollow) return;
  g.strokeStyle = rgb(color);
  g.lineWidth = 2;
  g.stroke();
}

/**
 * Its mark in a legend.
 *
 * @param {Look} look
 */
export function mark(look) {
  const i = el("i", { class: look.hollow ? "hollow" : "filled" });
  if (look.hollow) i.style.borderColor = rgb(look.color);
  else i.style.background = rgb(look.color);
  return i;
}

/**
 * A plain color of a legend, with its words.
 *
 * @param {number[]} color
 * @param {string} text
 * @param {number} [alpha]
 */
export function swatch(color, text, alpha = 1) {
  const i = el("i", {});
  i.style.background = rgb(color, alpha);
  return el("span", {}, i, text);
}

/**
 * Colors of cells with GRAIN pixels a side, those that are hollow with a hole.
 *
 * @param {Uint32Array} cells (n·w)
 * @param {number} w
 * @param {(k: number) => boolean} isHollow of the cell at this place
 * @param {(k: number) => number} inside color of its hole
 * @param {Uint32Array} pixels (n·w·GRAIN²), filled here
 */
export function grained(cells, w, isHollow, inside, pixels) {
  const wide = w * GRAIN,
    middle = GRAIN >> 1;
  for (let k = 0; k < cells.length; k++) {
    const at = Math.floor(k / w) * GRAIN * wide + (k % w) * GRAIN;
    for (let b = 0; b < GRAIN; b++) pixels.fill(cells[k], at + b * wide, at + b * wide + GRAIN);
    if (isHollow(k)) pixels[at + middle * wide + middle] = inside(k);
  }
}
