// Colors of weights and gradients by a table, so that a pixel costs one look-up.

import { PALETTE, fromHex, packed } from "../shared/canvas.js";
import { PULL, PUSH } from "../shared/push_pull.js";

/** Color of negatives that a margin leaves out. */
export const LEFT_OUT = fromHex(PALETTE[5]);

const MOST = 1e-38;

// A float's sign, exponent and four digits of its mantissa choose one of 8,192 colors: a scale over
// all magnitudes without a power per cell.
export const BITS = 19;
const SHADES = 1 << (32 - BITS);

function shades(colorOf) {
  const table = new Uint32Array(SHADES),
    bits = new Uint32Array(1),
    value = new Float32Array(bits.buffer);
  for (let k = 0; k < SHADES; k++) {
    bits[0] = k << BITS;
    table[k] = Number.isFinite(value[0]) ? colorOf(value[0]) : 0;
  }
  return table;
}

const weightShade = (color) => shades((p) => packed(color, p > 0 ? Math.pow(Math.min(1, p), 0.35) : 0));

export const TABLES = { positive: weightShade(PULL.color), negative: weightShade(PUSH.color) };

const DIVERGING = new Map();

/**
 * Shades of both signs up to `top`, in half octaves, so that a drag seldom makes a new table.
 *
 * @param {number} top
 * @param {boolean} turned
 * @param {number[][]} colors below and above 0
 */
export function divergingShades(top, turned, [below, above] = [PULL.color, PUSH.color]) {
  const half = Math.ceil(2 * Math.log2(top)),
    name = [half, turned, below, above].join();
  if (!DIVERGING.has(name)) {
    const most = Math.pow(2, half / 2);
    DIVERGING.set(
      name,
      shades((v) => packed(v < 0 !== turned ? below : above, Math.pow(Math.min(1, Math.abs(v) / most), 0.4))),
    );
  }
  return DIVERGING.get(name);
}

export const APART = 0.15; // alpha of pairs that are not compared

/** Masks under a value: color and alpha of positives (1) and negatives (2). @type {any[][]} */
const TINTS = [[], [PULL.color, 0.4], [PUSH.color, 0.15]];

const OVERLAID = new WeakMap();

/**
 * A table of shades as they look over the tint of mask 1 (positive) or 2 (negative).
 *
 * @param {Uint32Array} table
 * @param {number} mask
 */
export function overlaid(table, mask) {
  if (!OVERLAID.has(table)) OVERLAID.set(table, []);
  const known = OVERLAID.get(table),
    [color, tint] = TINTS[mask];
  return (known[mask] ||= table.map((shade) => {
    const a = (shade >>> 24) / 255,
      all = a + tint * (1 - a);
    return packed(
      [0, 8, 16].map((bits, c) => Math.round((a * ((shade >>> bits) & 255) + tint * (1 - a) * color[c]) / all)),
      all,
    );
  }));
}

/** @param {Float32Array} values */
export function largest(values) {
  let top = 0;
  for (let k = 0; k < values.length; k++) {
    const v = Math.abs(values[k]);
    if (v > top) top = v;
  }
  return Math.max(top, MOST);
}
