// The histogram of a batch's projections on one direction, beside the standard normal curve.

import { BLUE, ORANGE, rgb, sizeSquare } from "../shared/canvas.js";
import { el, isTouched, number, say } from "../shared/dom.js";
import { directionOf, projection } from "../shared/gaussian.js";
import { N_, _ } from "../shared/locale.js";
import { swatch } from "../shared/push_pull.js";

export const BINS = 32;
const RANGE = 4; // from −4 to 4; rows beyond are counted at the ends
const WIDTH = (2 * RANGE) / BINS;

/** Which of the ranked directions is shown. */
export const DIRECTIONS = { worst: N_("Worst direction"), median: N_("Median"), best: N_("Best") };

/**
 * Rows in each bin.
 *
 * @param {Float64Array} x
 */
export function binned(x) {
  const counts = new Array(BINS).fill(0);
  for (const value of x) counts[Math.min(BINS - 1, Math.max(0, Math.floor((value + RANGE) / WIDTH)))]++;
  return counts;
}

/**
 * Rows of n that a standard normal distribution has in a bin, on average.
 *
 * @param {number} bin
 * @param {number} n
 */
export function expected(bin, n) {
  const middle = -RANGE + (bin + 0.5) * WIDTH;
  return (n * WIDTH * Math.exp((-middle * middle) / 2)) / Math.sqrt(2 * Math.PI);
}

/**
 * The direction that is shown, with its rows. Kept until another one is shown.
 *
 * @param {any} lab
 */
function shownOf(lab) {
  const { found, order, direction, which } = lab,
    place = { worst: 0, median: Math.floor(order.length / 2), best: order.length - 1 }[direction],
    key = `${lab.key} ${order[place]} ${which}`;
  if (lab.shown?.key !== key) {
    const x = projection(found.views[which], directionOf(order[place], found.d));
    lab.shown = { key, direction: order[place], x, counts: binned(x) };
  }
  return lab.shown;
}

/** @param {any} lab */
export function drawHistogram(lab) {
  const { dimensions, found, which } = lab,
    shown = shownOf(lab),
    { mean, deviation } = momentsOf(shown.x);
  tell(dimensions, which ? _("Projections of view b on one direction") : _("Projections of view a on one direction"));
  say(dimensions.legendText, _("{count} of {all} directions computed", { count: lab.order.length, all: lab.count }));
  dimensions.legendText.hidden = lab.order.length === lab.count;
  const told = _("Direction {direction} of {all}: statistic {value}; mean {mean}, deviation {deviation}.", {
    direction: shown.direction + 1,
    all: lab.count,
    value: number(found.statistics[which][shown.direction]),
    mean: (Math.round(100 * mean) / 100 + 0).toFixed(2), // + 0: of −0
    deviation: deviation.toFixed(2),
  });
  say(dimensions.hint, `${told} ${dimensions.hover ? inWords(shown, dimensions.hover[1]) : asked()}`);
  paint(lab, shown);
}

function asked() {
  return isTouched() ? _("Tap a bar.") : _("Point at a bar, or use the arrow keys.");
}

function inWords({ x, counts }, bin) {
  const from = -RANGE + bin * WIDTH,
    values = { count: counts[bin], n: x.length, expected: expected(bin, x.length).toFixed(1) };
  if (bin === 0) return _("{count} of {n} rows below {to}.", { ...values, to: from + WIDTH });
  if (bin === BINS - 1) return _("{count} of {n} rows above {from}.", { ...values, from });
  return _("{count} of {n} rows from {from} to {to}; a standard normal distribution has {expected}.", {
    ...values,
    from,
    to: from + WIDTH,
  });
}

function momentsOf(x) {
  const mean = x.reduce((a, b) => a + b, 0) / x.length,
    variance = x.reduce((a, b) => a + (b - mean) ** 2, 0) / x.length;
  return { mean, deviation: Math.sqrt(variance) };
}

/** Title, label and legend, when they are others than before. */
function tell(part, title) {
  if (part.told === title) return;
  part.told = title;
  say(part.title, title);
  part.canvas.setAttribute("aria-label", _("{title}. Arrow keys choose a bar, which is described below.", { title }));
  part.legendText = el("span", {});
  part.legend.replaceChildren(swatch(BLUE, _("this batch")), swatch(ORANGE, _("standard normal")), part.legendText);
}

function paint({ dimensions: { canvas, hover }, ink }, { x, counts }) {
  const [g, size, dpr] = sizeSquare(canvas),
    foot = size - 22 * dpr,
    top = 1.1 * Math.max(...counts, expected(BINS / 2, x.length)),
    y = (value) => foot - (value / top) * (foot - 6 * dpr),
    wide = size / BINS;
  counts.forEach((count, bin) => {
    g.fillStyle = rgb(BLUE);
    g.globalAlpha = hover?.[1] === bin ? 1 : 0.7;
    g.fillRect(bin * wide + 0.5 * dpr, y(count), wide - dpr, foot - y(count));
  });
  g.globalAlpha = 1;
  g.strokeStyle = rgb(ORANGE);
  g.lineWidth = 2 * dpr;
  g.beginPath();
  for (let k = 0; k <= 4 * BINS; k++) g.lineTo((k * wide) / 4, y(expected(k / 4 - 0.5, x.length)));
  g.stroke();
  g.strokeStyle = g.fillStyle = ink;
  g.lineWidth = dpr;
  g.beginPath();
  g.moveTo(0, foot);
  g.lineTo(size, foot);
  g.stroke();
  g.font = `${12 * dpr}px 'Source Sans', 'Source Sans Pro', sans-serif`;
  g.textAlign = "center";
  for (let at = 1 - RANGE; at < RANGE; at++)
    g.fillText(String(at), ((at + RANGE) / (2 * RANGE)) * size, foot + 15 * dpr);
}
