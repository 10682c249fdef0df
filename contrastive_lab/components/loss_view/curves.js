// Everything of the chosen anchor along the knob: its weights, the entropy of its push, and effective negatives.

import { few } from "./figures.js";
import { isFar, isHinge, isLeftOut, isPlainSoftmax, positivesOf, ranked, steadyTop } from "./pairs.js";
import { BLUE, GRAY, ORANGE, halves, line, paintedOnce, rgb, tick, within } from "../shared/canvas.js";
import { number } from "../shared/dom.js";
import { evaluate, make } from "../shared/kernels.js";
import { fromSlider, knobText, symbolOf, toSlider } from "../shared/knob.js";
import { _ } from "../shared/locale.js";

export const SIDE = 10; // pixels left and right of a curve
const SAMPLE = 22; // pixels of a line beside its name
const STEPS = 80,
  LINES = 8; // of the weights: the nearest candidates
const LOOKS = { effective: [], entropy: [2, 3], loss: [7, 4] }; // dashes

const ALONE = 1.1; // effective negatives below which one negative is as good as alone

/**
 * Along the knob: loss, effective negatives, weight on the positives, and on the nearest.
 *
 * @param {LossViewState} lab
 */
export function alongKnob(lab) {
  const { knob } = lab.meta,
    name = JSON.stringify([lab.anchor, { ...lab.kernel, [lab.kernel.knob]: 0 }]);
  if (lab.cache.curvesName === name) return lab.cache.curves;
  const one = make(1, lab.w),
    at = lab.anchor * lab.w,
    nearest = ranked(lab).slice(0, LINES);
  const S = lab.S.subarray(at, at + lab.w),
    M = lab.M.subarray(at, at + lab.w),
    points = [];
  for (let s = 0; s <= STEPS; s++) {
    const v = fromSlider(knob, (1000 * s) / STEPS);
    const o = evaluate(S, M, 1, lab.w, { ...lab.kernel, [lab.kernel.knob]: v }, one);
    let p = 0;
    for (let j = 0; j < lab.w; j++) if (M[j] === 1) p += o.pair[j];
    points.push({
      t: s / STEPS,
      v,
      loss: o.loss[0],
      effective: o.effective[0],
      entropy: Math.log(Math.max(1, o.effective[0])),
      positives: p,
      each: nearest.map((j) => o.pair[j]),
    });
  }
  lab.cache.curvesName = name;
  return (lab.cache.curves = { points, nearest });
}

/** @type {PanelDraw} */
export function drawCurves(lab, g, width, height) {
  if (!lab.meta.knob || !lab.kernel.knob) return _("This loss has no temperature or margin to vary.");
  const { points, nearest } = alongKnob(lab),
    soft = !isHinge(lab),
    [first, second] = soft ? halves(width, height) : [null, { x: 0, y: 0, width, height }];
  if (first) within(g, first, (w, h) => drawWeights(lab, g, points, nearest, w, h));
  /** @type {Record<string, string>} */
  const names = { effective: soft ? _("negatives that matter") : _("negatives still pushed") };
  if (soft) names.entropy = _("entropy of the push");
  names.loss = _("loss");
  const lines = Object.entries(names).map(([field, name]) => {
    const top = steadyTop(lab, field, Math.max(1e-12, ...points.map((q) => q[field])));
    return { name: `${name} ≤ ${few(top)}`, color: GRAY, dash: LOOKS[field], of: (q) => q[field] / top };
  });
  within(g, second, (w, h) => plot(lab, g, points, lines, w, h));
  return curveWords(lab, points, soft);
}

function drawWeights(lab, g, points, nearest, width, height) {
  const title = _("weight of the {count} nearest: positive (blue), negatives (dashed)", { count: nearest.length });
  const lines = nearest.map((j, k) => {
    const isPositive = lab.M[lab.anchor * lab.w + j] === 1;
    return {
      color: isPositive ? BLUE : ORANGE,
      wide: lab.hover?.[1] === j ? 3.5 : 1.6,
      dash: isPositive ? [] : [12 - 3 * (k % 4), 3],
      of: (q) => q.each[k],
    };
  });
  plot(lab, g, points, lines, width, height, title);
}

/**
 * Lines over the knob, from 0 to 1; the knob's place is marked. The lines stay as they are while the knob moves, so
 * they are painted once.
 *
 * @param {LossViewState} lab
 * @param {CanvasRenderingContext2D} g
 * @param {{ t: number }[]} points
 * @param {{ name?: string, color: number[], dash: number[], wide?: number, of: (q: any) => number }[]} lines
 * @param {number} width
 * @param {number} height
 * @param {string} [title]
 */
export function plot(lab, g, points, lines, width, height, title) {
  const places = title ? [] : placed(g, lines, width),
    top = title ? 30 : places.at(-1).y + 16,
    dpr = devicePixelRatio || 1,
    device = (v) => Math.max(1, Math.round(v * dpr)),
    looks = [lab.cache.curvesName, lab.ink, width, height, dpr, ...lines.map((one) => one.name ?? one.wide)],
    name = title ?? lines.length; // a sweep has one line
  const still = paintedOnce(lab.cache, name, looks, device(width), device(height), (c) => {
    c.scale(dpr, dpr);
    c.font = g.font;
    drawLines(lab, c, points, lines, { width, height, top, places, title });
  });
  g.drawImage(still, 0, 0, width, height);
  const here = SIDE + (toSlider(lab.meta.knob, lab.value) / 1000) * (width - 2 * SIDE),
    ends = [top - 8, height - 16].map((v) => [here, v]);
  line(g, ends, lab.accent);
}

function drawLines(lab, g, points, lines, { width, height, top, places, title }) {
  g.fillStyle = lab.ink;
  if (title) g.fillText(title, 10, 14, width - 20);
  const knob = lab.meta.knob,
    x = (t) => SIDE + t * (width - 2 * SIDE),
    y = (v) => height - 18 - v * (height - 18 - top);
  lines.forEach(({ name, color, dash, of, wide }, k) => {
    g.setLineDash(dash);
    const path = points.map((q) => [x(q.t), y(of(q))]);
    line(g, path, rgb(color), wide);
    if (name) {
      const at = places[k];
      line(g, [[at.x, at.y - 4], [at.x + SAMPLE, at.y - 4]], rgb(color)); // prettier-ignore
      g.fillText(name, at.x + SAMPLE + 5, at.y);
    }
    g.setLineDash([]);
  });
  g.fillStyle = lab.ink;
  const marks = knob.log
    ? [0.01, 0.05, 0.2, 1, 5, 10].filter((v) => v >= knob.low && v <= knob.high)
    : [0, 0.25, 0.5, 0.75, 1].map((t) => Number((knob.low + t * (knob.high - knob.low)).toPrecision(3)));
  for (const v of marks) tick(g, String(v), x(toSlider(knob, v) / 1000), height - 3, width);
}

/** Where the names of lines stand, one after the other, in as many rows as they need. */
function placed(g, lines, width) {
  let x = 10,
    y = 14;
  return lines.map(({ name }) => {
    const wide = SAMPLE + 5 + g.measureText(name).width;
    if (x > 10 && x + wide > width) [x, y] = [10, y + 16];
    const place = { x, y };
    x += wide + 16;
    return place;
  });
}

export function curveWords(lab, points, soft) {
  const { knob } = lab.meta,
    symbol = symbolOf(knob);
  const told = _("Anchor {anchor} over {symbol}. The vertical line marks the current {symbol}.", {
    anchor: lab.meta.names[lab.anchor],
    symbol,
  });
  if (!soft) return told + marginEnds(lab, points, symbol);
  return told + (lab.kernel.family === "sigmoid" ? saturation(lab) : lowEnd(lab, points));
}

/** Whether the lowest temperatures single out one negative. */
function lowEnd(lab, points) {
  const alone = points.filter((q) => q.effective > 0 && q.effective < ALONE).pop(),
    [first] = points;
  if (!alone)
    return first.effective
      ? _(" Even at τ = {value}, the lowest one, {count} negatives matter.", {
          value: knobText(first.v),
          count: few(first.effective),
        })
      : "";
  const end = _(
    " Below τ = {value} the hardest negative gets nearly the whole push on negatives (negatives that matter under " +
      "{alone}). Lowering τ further does not change which negatives matter.",
    { value: number(alone.v), alone: ALONE },
  );
  return end + (isPlainSoftmax(lab.kernel) && lab.kernel.scale === "none" ? limit(lab) : "");
}

/** Sigmoids share no total: where the bias no longer counts, each similarity above 0 gets the whole of its own. */
function saturation({ S, M, w, anchor, out }) {
  let count = 0;
  for (let k = anchor * w; k < (anchor + 1) * w; k++) if (M[k] === 2 && S[k] > 0) count++;
  return _(
    " Each pair has its own sigmoid. As τ → 0, the weight of every negative with a similarity above 0 goes to 1 " +
      "({count} of {n}).",
    { count, n: out.negatives[anchor] },
  );
}

/** What is left of the loss as τ → 0: τ·L → max(0, hardest negative − positive). */
function limit(lab) {
  const positives = positivesOf(lab),
    at = lab.anchor * lab.w,
    sign = isFar(lab) ? -1 : 1;
  const hardest = ranked(lab).find((j) => lab.M[at + j] === 2 && !isLeftOut(lab, at + j));
  if (positives.length !== 1 || hardest === undefined) return _(" Only the scale 1/τ of the loss still changes.");
  const gap = sign * (lab.S[at + hardest] - lab.S[at + positives[0]]);
  return gap > 0
    ? _(" The hardest negative is nearer than the positive by {gap}, so the loss only grows, as {gap}/τ.", {
        gap: number(gap),
      })
    : _(" The positive is nearer than the hardest negative by {gap}, so loss and gradient go to 0.", {
        gap: number(-gap),
      });
}

function marginEnds(lab, points, symbol) {
  const none = points.filter((q) => q.effective === 0).pop(),
    most = points[points.length - 1].effective,
    from = points.find((q) => q.effective === most);
  const start = none ? _(" Up to {symbol} = {v} no negative is pushed.", { symbol, v: number(none.v) }) : "";
  if (!most) return start;
  const values = { symbol, v: number(from.v), most, total: lab.out.negatives[lab.anchor] };
  const end =
    most === values.total
      ? _(" From {symbol} = {v} all {most} negatives are pushed.", values)
      : _(" From {symbol} = {v} at most {most} of {total} negatives are pushed.", values);
  return start + end;
}
