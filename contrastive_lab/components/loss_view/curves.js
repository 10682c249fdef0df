// Everything of the chosen anchor along the knob: its softmax, entropy and effective negatives.

import { few } from "./figures.js";
import { isFar, isHinge, positivesOf, ranked } from "./pairs.js";
import { BLUE, GREEN, ORANGE, line, rgb, tick } from "../shared/canvas.js";
import { number, say } from "../shared/dom.js";
import { evaluate, make } from "../shared/kernels.js";
import { fromSlider, toSlider } from "../shared/knob.js";

const STEPS = 80,
  LINES = 8; // of the softmax, the nearest candidates

const ALONE = 1.1; // effective negatives below which one negative is as good as alone

/** Along the knob: loss, effective negatives, weight on the positives, and on the nearest. */
function alongKnob(lab) {
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

/**
 * @param {LossViewState} lab
 * @param {CanvasRenderingContext2D} g
 * @param {number} width
 * @param {number} height
 */
export function drawCurves(lab, g, width, height) {
  const knob = lab.meta.knob;
  if (!knob || !lab.kernel.knob) {
    say(lab.note, "This loss has no temperature or margin to go along.");
    return;
  }
  const { points, nearest } = alongKnob(lab),
    soft = !isHinge(lab),
    half = soft ? width / 2 - 14 : width;
  if (soft) drawSoftmax(lab, g, points, nearest, half, height);
  const curves = soft
    ? [
        ["effective", "effective negatives", BLUE, []],
        ["entropy", "their entropy", GREEN, [2, 3]],
        ["loss", "loss", ORANGE, [7, 4]],
      ]
    : [
        ["effective", "negatives still pushed", BLUE, []],
        ["loss", "loss", ORANGE, [7, 4]],
      ];
  plot(
    lab,
    g,
    curves.map((/** @type {[string, string, number[], number[]]} */ [field, name, color, dash]) => {
      const top = Math.max(1e-12, ...points.map((q) => q[field]));
      return { name: `${name} ≤ ${few(top)}`, color, dash, values: points.map((q) => [q.t, q[field] / top]) };
    }),
    width - half,
    half,
    height,
  );
  say(lab.note, curveWords(lab, points, soft));
}

function drawSoftmax(lab, g, points, nearest, width, height) {
  const at = lab.anchor * lab.w;
  plot(
    lab,
    g,
    nearest.map((j, k) => {
      const positive = lab.M[at + j] === 1,
        lit = lab.hover && lab.hover[1] === j;
      return {
        color: positive ? BLUE : ORANGE,
        wide: lit ? 3.5 : 1.6,
        dash: positive ? [] : [[], [8, 3], [4, 3], [2, 2]][k % 4],
        values: points.map((q) => [q.t, q.each[k]]),
      };
    }),
    0,
    width,
    height,
    `softmax of the ${nearest.length} nearest: positive (blue), negatives (orange)`,
  );
}

/** Lines over the knob, from 0 to 1, in a part of the canvas; the knob's place is marked. */
function plot(lab, g, lines, left, width, height, title) {
  const knob = lab.meta.knob,
    x = (t) => left + 10 + t * (width - 20),
    y = (v) => height - 18 - v * (height - 48);
  let text = left + 10;
  if (title) g.fillText(title, text, 14);
  for (const { name, color, dash, values, wide } of lines) {
    g.setLineDash(dash);
    line(
      g,
      values.map(([t, v]) => [x(t), y(v)]),
      rgb(color),
      wide,
    );
    g.setLineDash([]);
    if (!name) continue;
    g.fillStyle = rgb(color);
    g.fillRect(text, 6, 9, 9);
    g.fillStyle = lab.ink;
    g.fillText(name, text + 13, 14);
    text += g.measureText(name).width + 26;
  }
  g.fillStyle = lab.ink;
  const marks = knob.log
    ? [0.01, 0.05, 0.2, 1, 5, 10].filter((v) => v >= knob.low && v <= knob.high)
    : [0, 0.25, 0.5, 0.75, 1].map((t) => Number((knob.low + t * (knob.high - knob.low)).toPrecision(3)));
  for (const v of marks) tick(g, String(v), x(toSlider(knob, v) / 1000), height - 3, left + width);
  const here = x(toSlider(knob, lab.value) / 1000);
  line(
    g,
    [
      [here, 22],
      [here, height - 16],
    ],
    lab.accent,
  );
}

function curveWords(lab, points, soft) {
  const { knob } = lab.meta,
    symbol = knob.label.split(",")[0];
  const told = `Anchor ${lab.meta.names[lab.anchor]} over ${symbol}; the upright line is where ${symbol} stands now.`;
  if (!soft) return `${told} ${marginEnds(lab, points, symbol)}`;
  const alone = points.filter((q) => q.effective > 0 && q.effective < ALONE).pop();
  if (!alone) return `${told} At no τ is one negative left alone: several are as near as the nearest.`;
  return (
    `${told} Below τ = ${number(alone.v)} the softmax over its negatives lies on the hardest one alone ` +
    `(effective negatives under ${ALONE}), so that lowering τ further no longer changes which negatives matter: ` +
    limit(lab)
  );
}

/** What is left of the loss as τ → 0: τ·L → max(0, hardest negative − positive). */
function limit(lab) {
  const positives = positivesOf(lab),
    at = lab.anchor * lab.w,
    sign = isFar(lab) ? -1 : 1;
  const hardest = ranked(lab).find((j) => lab.M[at + j] === 2);
  if (positives.length !== 1 || hardest === undefined) return "all that is left is a scale of 1/τ.";
  const gap = sign * (lab.S[at + hardest] - lab.S[at + positives[0]]);
  return gap > 0
    ? `its hardest negative is nearer than its positive by ${number(gap)}, so the loss only grows, as ${number(gap)}/τ.`
    : `its positive is nearer than the hardest negative by ${number(-gap)}, so loss and gradient go to 0.`;
}

function marginEnds(lab, points, symbol) {
  const none = points.filter((q) => q.effective === 0).pop(),
    most = points[points.length - 1].effective,
    from = points.find((q) => q.effective === most);
  const start = none ? `Up to ${symbol} = ${number(none.v)} no negative is pushed. ` : "";
  if (!most) return start;
  const of =
    most === lab.out.negatives[lab.anchor]
      ? `all ${most} negatives are pushed`
      : `${most} of ${lab.out.negatives[lab.anchor]} negatives are pushed, and no more`;
  return `${start}From ${symbol} = ${number(from.v)} on ${of}.`;
}
