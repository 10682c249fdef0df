// The two matrices: cosines of samples, and the correlation or covariance of dimensions.

import { drawHistogram } from "./histogram.js";
import { dimensionInWords, samplesInWords } from "./words.js";
import { BLUE, GREEN, ORANGE, drawCells, packed, sizeSquare } from "../shared/canvas.js";
import { partOfCell, weightOff } from "../shared/dimensions.js";
import { el, isTouched, say } from "../shared/dom.js";
import { _ } from "../shared/locale.js";
import { swatch } from "../shared/push_pull.js";

const FADE = 0.6; // power of a value's share of the largest one: small values are seen

/**
 * One pixel per cell, into buffers that are stretched over the canvases.
 *
 * @param {any} lab
 */
export function paintMatrices(lab) {
  const { samples, dimensions, found, which, shade } = lab;
  if (!samples.buffer) paint(samples, samples.values, 1, bySign);
  if (found.form === "gaussian") return;
  dimensions.values = found.matrices[which] ?? found.matrices[0];
  if (shade === "value") {
    const painted = `${lab.key} ${which}`; // a knob moves no value
    if (dimensions.painted !== painted) paint(dimensions, dimensions.values, largest(dimensions.values), bySign);
    dimensions.painted = painted;
    return;
  }
  dimensions.painted = "";
  paintParts(lab);
}

/** Each cell's part of the loss. Off the diagonal all parts grow alike with the weight: their shades are computed once
 * for a matrix, so that a frame of a drag costs one look-up per cell. */
function paintParts({ key, dimensions, found, which, knobs }) {
  const s = dimensions.size,
    base = basesOf(dimensions, `${key} ${which}`),
    onDiagonal = Array.from({ length: s }, (_part, j) => partOfCell(found, knobs, which, j, j)),
    weight = weightOff(found, knobs),
    top = Math.max(weight * base.largest, largest(onDiagonal)),
    scale = 255 * Math.pow((weight * base.largest) / top, FADE),
    image = new ImageData(s, s),
    pixels = new Uint32Array(image.data.buffer);
  for (let k = 0; k < pixels.length; k++) pixels[k] = SHADES[(scale * base.shades[k]) | 0];
  onDiagonal.forEach((part, j) => (pixels[j * (s + 1)] = packed(GREEN, Math.pow(part / top, FADE))));
  put(dimensions, image);
}

const SHADES = Uint32Array.from({ length: 256 }, (_shade, k) => packed(ORANGE, k / 255));

/** The squares of a matrix as shades, from 0 to 1 for the largest off the diagonal. Kept for its next frame. */
function basesOf(dimensions, key) {
  if (dimensions.base?.key === key) return dimensions.base;
  const { values, size } = dimensions;
  let top = 1e-30;
  values.forEach((value, k) => {
    if (k % (size + 1)) top = Math.max(top, value * value);
  });
  const shades = Float32Array.from(values, (value) => Math.min(1, Math.pow((value * value) / top, FADE)));
  return (dimensions.base = { key, largest: top, shades });
}

const bySign = (value) => (value < 0 ? ORANGE : BLUE);

function largest(values) {
  let top = 1e-30;
  for (let k = 0; k < values.length; k++) top = Math.max(top, Math.abs(values[k]));
  return top;
}

function paint(matrix, values, top, colorOf) {
  const { size } = matrix,
    image = new ImageData(size, size),
    pixels = new Uint32Array(image.data.buffer);
  for (let k = 0; k < values.length; k++)
    pixels[k] = packed(colorOf(values[k], k), Math.pow(Math.abs(values[k]) / top, FADE));
  put(matrix, image);
}

function put(matrix, image) {
  matrix.buffer ||= new OffscreenCanvas(image.width, image.height);
  matrix.buffer.getContext("2d").putImageData(image, 0, 0);
}

/** @param {any} lab */
export function drawMatrices(lab) {
  const { samples, dimensions, found } = lab,
    isCorrelation = found.form === "correlation";
  lab.viewBar.hidden = isCorrelation;
  tell(samples, _("Cosine similarity of samples ({m} × {m})", { m: lab.m }), "value");
  const ask = isTouched() ? _("Tap a cell.") : _("Point at a cell, or use the arrow keys.");
  say(samples.hint, samples.hover ? samplesInWords(lab, samples.hover[0], samples.hover[1]) : ask);
  drawOne(lab, samples);
  if (found.form === "gaussian") return drawHistogram(lab);
  const name = isCorrelation
    ? _("Correlation of dimensions, view a with view b ({d} × {d})", { d: dimensions.size })
    : lab.which
      ? _("Covariance of dimensions in view b ({d} × {d})", { d: dimensions.size })
      : _("Covariance of dimensions in view a ({d} × {d})", { d: dimensions.size });
  tell(dimensions, name, lab.shade);
  const part = _("Shows the {shown} of {d} dimensions that correlate most with others; the terms count all.", {
    shown: found.shown.length,
    d: found.d,
  });
  const told = dimensions.hover ? dimensionInWords(lab, dimensions.hover[0], dimensions.hover[1]) : ask;
  say(dimensions.hint, found.shown.length < found.d ? `${part} ${told}` : told);
  drawOne(lab, dimensions);
}

/** Title, label and legend, when they are others than before. */
function tell(matrix, title, shade) {
  const told = `${title} ${shade}`;
  if (matrix.told === told) return;
  matrix.told = told;
  say(matrix.title, title);
  matrix.canvas.setAttribute(
    "aria-label",
    _("{title}. Arrow keys choose a cell, which is described below.", { title }),
  );
  matrix.legend.replaceChildren(
    ...(shade === "value"
      ? [swatch(BLUE, _("above 0")), swatch(ORANGE, _("below 0"))]
      : [swatch(GREEN, _("on the diagonal")), swatch(ORANGE, _("off the diagonal"))]),
    el("span", {}, shade === "value" ? _("stronger color: farther from 0") : _("stronger color: more of the loss")),
  );
}

function drawOne(lab, matrix) {
  const [g, size, dpr] = sizeSquare(matrix.canvas),
    cell = size / matrix.size;
  drawCells(g, matrix.buffer, { from: 0, side: size, cells: matrix.size, ink: lab.ink });
  if (!matrix.hover) return;
  const [j, k] = matrix.hover,
    wide = Math.max(cell, 5 * dpr);
  g.lineWidth = 1.5 * dpr;
  g.strokeRect(k * cell + (cell - wide) / 2, j * cell + (cell - wide) / 2, wide, wide);
}

/**
 * Row and column under the pointer.
 *
 * @param {any} matrix
 * @param {any} e
 * @returns {[number, number] | null}
 */
export function cellAt({ canvas, size }, e) {
  const at = (offset, side) => Math.min(size - 1, Math.max(0, Math.floor((offset / side) * size)));
  return size ? [at(e.offsetY, canvas.clientHeight), at(e.offsetX, canvas.clientWidth)] : null;
}

/**
 * Row and column that a key leads to; null for any other key.
 *
 * @param {any} matrix
 * @param {string} key
 * @returns {[number, number] | null}
 */
export function cellByKey({ size, hover }, key) {
  const rows = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -size, End: size }[key] ?? 0,
    columns = { ArrowRight: 1, ArrowLeft: -1 }[key] ?? 0;
  if (!size || (!rows && !columns)) return null;
  if (!hover) return [0, 0];
  const within = (at) => Math.min(size - 1, Math.max(0, at));
  return [within(hover[0] + rows), within(hover[1] + columns)];
}
