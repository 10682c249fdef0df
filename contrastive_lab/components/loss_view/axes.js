// The axes of the matrix: pictures of anchors and candidates, or what they say, or their names.

import { thumb } from "./thumbnails.js";
import { paintedOnce } from "../shared/canvas.js";
import { isRightToLeft } from "../shared/texts.js";

const PICTURE = 22, // CSS pixels: width of a strip of pictures
  TEXT = 112, // of one of texts, at most
  LINE = 14; // from one text to the next

/**
 * Width of both strips in device pixels; 0 where rows have no pictures and there are no words to write.
 *
 * @param {LossViewState} lab
 * @param {number} dpr
 * @param {number} size
 */
export function stripOf(lab, dpr, size) {
  if (wordsIn(lab).some(Boolean)) return Math.round(Math.min(TEXT * dpr, size / 5));
  return lab.sprite ? Math.round(PICTURE * dpr) : 0;
}

/**
 * What is written at rows and at columns; null where they have pictures, or where no side says anything.
 *
 * @param {any} meta
 * @returns {(string[] | null)[]}
 */
export function wordsOf({ names, texts, rowThumbs, columnNames, columnTexts, columnThumbs }) {
  const sides = [
    { names, texts, thumbs: rowThumbs },
    { names: columnNames, texts: columnTexts, thumbs: columnThumbs },
  ].map((side) => ({ ...side, isBare: !side.thumbs.some((index) => index >= 0) }));
  const areWritten = sides.every((side) => side.isBare) || sides.some((side) => side.isBare && side.texts?.length);
  return sides.map((side) =>
    areWritten && side.isBare ? distinct(side.texts?.length ? side.texts : side.names) : null,
  );
}

/** The same of the batch, found once. */
function wordsIn(lab) {
  return (lab.cache.words ??= wordsOf(lab.meta));
}

const WORD = /[^\s_/:\p{Script=Han}]*$/u; // the part of a word at the end

/**
 * Texts without the words that all begin with: what is left of them differs first.
 *
 * @param {string[]} texts "" for none
 */
export function distinct(texts) {
  const said = texts.filter(Boolean);
  let start = said[0] ?? "";
  for (const text of said) while (!text.startsWith(start)) start = start.slice(0, -1);
  const from = start.replace(WORD, "").length;
  return said.some((text) => text.length === from) ? texts : texts.map((text) => text.slice(from));
}

/**
 * @param {LossViewState} lab
 * @param {CanvasRenderingContext2D} g
 * @param {number} strip
 * @param {number} side
 */
export function drawAxes(lab, g, strip, side) {
  const { rowThumbs, columnThumbs } = lab.meta,
    tile = PICTURE * (devicePixelRatio || 1),
    from = strip - tile;
  if (lab.sprite) {
    for (const [i, at] of places(lab.rows, tile, side)) thumb(lab, g, rowThumbs[i], from, strip + at, tile - 2);
    for (const [j, at] of places(lab.columns, tile, side)) thumb(lab, g, columnThumbs[j], strip + at, from, tile - 2);
  }
  const drawn = textsOf(lab, strip, side);
  if (!drawn) return;
  const size = strip + side;
  g.drawImage(drawn, 0, 0, size, strip, 0, 0, size, strip);
  g.drawImage(drawn, 0, strip, strip, side, 0, strip, strip, side);
}

/** Every row that has room on an axis, and where it begins. */
function places(order, step, side) {
  const stride = Math.max(1, Math.ceil((step * order.length) / side)),
    found = [];
  for (let place = 0; place < order.length; place += stride) {
    const at = (place / order.length) * side;
    if (place === 0 || at + step <= side) found.push([order[place], at]);
  }
  return found;
}

/** Both strips of texts, painted once for an order and a size; null for no texts. */
function textsOf(lab, strip, side) {
  if (!wordsIn(lab).some(Boolean)) return null;
  const size = strip + side,
    looks = [lab.order, strip, side, lab.ink];
  return paintedOnce(lab.cache, "axes", looks, size, size, (g) => writeTexts(lab, g, strip, side));
}

function writeTexts(lab, g, strip, side) {
  const [ofRows, ofColumns] = wordsIn(lab),
    line = LINE * (devicePixelRatio || 1);
  g.fillStyle = lab.ink;
  g.font = `${(12 * line) / LINE}px 'Source Sans', 'Source Sans Pro', sans-serif`;
  g.textBaseline = "middle";
  const write = (order, said) => {
    g.beginPath();
    g.rect(0, strip, strip - 4, side);
    g.clip();
    const half = side / order.length / 2;
    for (const [i, at] of places(order, line, side)) {
      const isFromRight = isRightToLeft(said[i]); // what is cut off is its end
      g.direction = isFromRight ? "rtl" : "ltr";
      g.fillText(
        said[i],
        isFromRight ? strip - 4 : 2,
        strip + Math.max(line / 2, Math.min(at + half, side - line / 2)),
      );
    }
  };
  g.save();
  if (ofRows) write(lab.rows, ofRows);
  g.restore();
  g.translate(0, strip);
  g.rotate(-Math.PI / 2); // upwards from the matrix
  if (ofColumns) write(lab.columns, ofColumns);
}
