// The matrix: one pixel per pair in the order that is chosen, pictures or texts on its axes.

import { drawAxes, stripOf } from "./axes.js";
import { tell } from "./legend.js";
import { isAcross, isFar, isLeftOut, partnersOf } from "./pairs.js";
import { APART, BITS, LEFT_OUT, TABLES, divergingShades, largest, overlaid } from "./shades.js";
import { GRAY, GREEN, drawCells, packed, sizeSquare } from "../shared/canvas.js";
import { GRAIN, PULL, PUSH, grained } from "../shared/push_pull.js";

const LEFT = packed(LEFT_OUT, 0.9);
const WIDE = 5; // CSS pixels of a cell from which on its shape is seen

/**
 * One pixel per pair, into a buffer that is stretched over the canvas; where cells are wide enough, some pixels each,
 * so that what is pushed has a hole.
 *
 * @param {LossViewState} lab
 * @param {boolean} isWide
 */
function paintMatrix(lab, isWide) {
  const { n, w, S, M, pixels, out, view, rows, columns } = lab;
  const self = packed(GRAY, 0.75),
    values = view === "grad" ? out && out.grad : out && out.pair;
  const bits = values && new Uint32Array(values.buffer),
    tables = [null, TABLES.positive, TABLES.negative, null];
  // a distance that grows the loss is pulled
  if (view === "grad" && values) tables[1] = tables[2] = divergingShades(largest(values), isFar(lab));
  const marked = lab.overlay || view === "mask";
  if (lab.overlay && values) for (const m of [1, 2]) tables[m] = overlaid(tables[m], m);
  const [low, high] = lab.range,
    span = 255 / (high - low || 1),
    far = isFar(lab);
  /** @type {any[]} */
  const flat = lab.overlay ? [0, PULL.color, PUSH.color] : [0, GREEN, GREEN],
    least = lab.overlay ? APART : 0;
  const ramps = flat.map(
    (c) =>
      c && Uint32Array.from({ length: 256 }, (_, k) => packed(c, least + (1 - least) * (far ? 1 - k / 255 : k / 255))),
  );
  const plain = [marked ? packed(GRAY, APART) : 0, packed(PULL.color, 1), packed(PUSH.color, 0.45), self],
    unknown = packed(GRAY, 0.2),
    marksLeftOut = (view !== "score" || lab.overlay) && out?.leftOut?.some((count) => count > 0);
  for (let r = 0, p = 0; r < n; r++) {
    const at = rows[r] * w;
    for (let c = 0; c < w; c++, p++) {
      const k = at + columns[c],
        m = M[k];
      if (m === 0 || m === 3) pixels[p] = plain[m];
      else if (marksLeftOut && isLeftOut(lab, k)) pixels[p] = LEFT;
      else if (view === "mask") pixels[p] = plain[m];
      else if (view === "score") pixels[p] = ramps[m][((S[k] - low) * span) | 0];
      else if (!values) pixels[p] = unknown;
      else pixels[p] = tables[m][bits[k] >>> BITS];
    }
  }
  Object.assign(lab, { isPainted: true, hasGrain: isWide });
  if (lab.hasGrain) paintGrain(lab, values, tables);
  else lab.buffer.getContext("2d").putImageData(lab.image, 0, 0);
}

/** The same with a hole in every cell that is pushed or, where nothing moves, negative; marks tint the hole. */
function paintGrain(lab, values, tables) {
  const { n, w, M, rows, columns, view } = lab,
    far = isFar(lab),
    kind = (k) => rows[Math.floor(k / w)] * w + columns[k % w];
  const isHollow =
    view === "score" && !lab.overlay
      ? () => false
      : view === "grad" && values
        ? (k) => values[kind(k)] > 0 !== far && values[kind(k)] !== 0
        : (k) => M[kind(k)] === 2;
  const inside = lab.overlay && values && view !== "mask" ? (k) => tables[M[kind(k)]][0] : () => 0;
  lab.grained ||= new ImageData(w * GRAIN, n * GRAIN);
  lab.grainedBuffer ||= new OffscreenCanvas(w * GRAIN, n * GRAIN);
  grained(lab.pixels, w, isHollow, inside, new Uint32Array(lab.grained.data.buffer));
  lab.grainedBuffer.getContext("2d").putImageData(lab.grained, 0, 0);
}

/** @param {LossViewState} lab */
export function drawMatrix(lab) {
  const [g, size, dpr] = sizeSquare(lab.matrix),
    strip = stripOf(lab, dpr, size),
    side = size - strip,
    isWide = size >= WIDE * dpr * Math.max(lab.n, lab.w);
  lab.plot = { strip, side };
  if (!lab.isPainted || lab.hasGrain !== isWide) paintMatrix(lab, isWide);
  drawCells(g, lab.hasGrain ? lab.grainedBuffer : lab.buffer, { from: strip, side, cells: lab.w, ink: lab.ink });
  if (strip) drawAxes(lab, g, strip, side);
  const ch = side / lab.n,
    cw = side / lab.w,
    [row, column] = lab.hover || [null, null];
  const top = (i) => strip + lab.rows.indexOf(i) * ch,
    left = (j) => strip + lab.columns.indexOf(j) * cw;
  g.fillStyle = lab.ink;
  const dot = Math.min(3 * dpr, cw, ch);
  for (const k of lab.meta.given ?? [])
    g.fillRect(left(k % lab.w) + (cw - dot) / 2, top(Math.floor(k / lab.w)) + (ch - dot) / 2, dot, dot);
  g.strokeStyle = lab.accent;
  g.lineWidth = 1.5 * dpr;
  g.strokeRect(0, top(lab.anchor), size, Math.max(ch, 2));
  const cell = (i, j) => g.strokeRect(left(j), top(i), Math.max(cw, 3), Math.max(ch, 3));
  if (isAcross(lab)) markPartners(lab, g, cell, row, column);
  g.strokeStyle = lab.ink;
  if (row !== null && column !== null) cell(row, column);
  else if (row !== null) g.strokeRect(0, top(row), size, Math.max(ch, 2));
  else if (column !== null) g.strokeRect(left(column), 0, Math.max(cw, 2), size);
  tell(lab);
}

/** What belongs to the row and to the column that are pointed at. */
function markPartners(lab, g, cell, row, column) {
  g.setLineDash([g.lineWidth * 2, g.lineWidth]);
  if (column !== null) for (const i of partnersOf(lab, null, column)) cell(i, column);
  if (row !== null) for (const j of partnersOf(lab, row)) cell(row, j);
  g.setLineDash([]);
}

/**
 * Anchor and candidate under the pointer; on an axis one of them is null.
 *
 * @param {LossViewState} lab
 * @param {any} e
 * @returns {[number | null, number | null] | null}
 */
export function cellAt(lab, e) {
  if (!lab.plot) return null;
  const dpr = devicePixelRatio || 1,
    x = e.offsetX * dpr - lab.plot.strip,
    y = e.offsetY * dpr - lab.plot.strip;
  const row = y < 0 ? null : lab.rows[Math.floor((y / lab.plot.side) * lab.n)];
  const column = x < 0 ? null : lab.columns[Math.floor((x / lab.plot.side) * lab.w)];
  return row === undefined || column === undefined || (row === null && column === null) ? null : [row, column];
}
