// When a lesson is done: named checks of the state that a live view is in. contrastive_lab/loss_lab/lessons.py
// names them with their thresholds.

import { number, percent } from "./dom.js";

const count = (x) => (x < 9.95 && !Number.isInteger(x) ? x.toFixed(1) : x.toFixed(0));

const above = (now, at) => now > at,
  below = (now, at) => now < at,
  atLeast = (now, at) => now >= at,
  within = (now, at) => now >= 1 / at && now <= at;

/**
 * Each check: the value it looks at, when it holds, how the value is said, and the ends of its gauge; `log`: a gauge of
 * ratios.
 *
 * @typedef {{ of: (facts: any) => any, holds: (now: any, at: number) => boolean, say: (now: any, facts: any) => string,
 *   scale?: [number, number], log?: boolean }} Check
 * @type {Record<string, Check>}
 */
export const CHECKS = {
  other_view: { of: (f) => f.otherView, holds: (now) => now, say: String },
  alignment_below: { of: (f) => f.alignment, holds: below, say: number, scale: [2, 0.01], log: true },
  hardest_share_above: { of: (f) => f.share, holds: above, say: percent, scale: [0, 1] },
  negatives_at_least: { of: (f) => f.negatives, holds: atLeast, say: count, scale: [0, 20] },
  pairs_pushed_from_one_to: {
    of: (f) => (f.form === "pair" ? f.negatives : NaN),
    holds: (now, at) => now >= 1 && now <= at,
    say: count,
    scale: [12, 0],
  },
  triplets_pushed_at_least: {
    of: (f) => (f.form === "triplet" ? f.negatives : NaN),
    holds: atLeast,
    say: count,
    scale: [0, 8],
  },
  positives_at_least: { of: (f) => f.positives, holds: atLeast, say: count },
  collapsed_without_stop_gradient: {
    of: (f) => f.spreadWithoutStopGradient,
    holds: below,
    say: number,
    scale: [1, 0],
  },
  collapsed_without_predictor: { of: (f) => f.spreadWithoutPredictor, holds: below, say: number, scale: [1, 0] },
  steps_with_both_at_least: { of: (f) => f.stepsWithBoth, holds: atLeast, say: count, scale: [0, 600] },
  // at γ = 0 there is no hinge to compare
  variance_share_below: {
    of: (f) => (f.deviation > 0 ? f.varianceShare : NaN),
    holds: below,
    say: percent,
    scale: [1, 0],
  },
  off_diagonal_share_above: { of: (f) => f.offDiagonalShare, holds: above, say: percent, scale: [0, 1] },
  weighted_share_above: { of: (f) => (f.isHard ? f.share : NaN), holds: above, say: percent, scale: [0, 1] },
  left_out_at_least: { of: (f) => f.leftOut, holds: atLeast, say: count, scale: [0, 8] },
  // what is said is the ratio; what has to be reached is the temperature
  softmax_cooled_to: {
    of: (f) => (f.family === "softmax" && f.ratio > 0 ? f.temperature : NaN),
    holds: (now, at) => now <= at,
    say: (_now, f) => f.ratio.toFixed(2),
    scale: [1, 0.05],
    log: true,
  },
  sigmoid_balanced_within: {
    of: (f) => (f.family === "sigmoid" ? f.ratio : NaN),
    holds: within,
    say: (now) => (now < 1000 ? now.toFixed(2) : now.toExponential(0)),
    scale: [0.1, 1000],
    log: true,
  },
  // with one positive both forms are the same
  form_is_in: { of: (f) => (f.positives > 1 ? f.form : NaN), holds: (now) => now === "in", say: String },
};

const isKnown = (now) => now !== undefined && now !== null && !Number.isNaN(now);

/**
 * Whether each check holds, and what it sees now.
 *
 * @param {{ name: string, at: number }[]} checks
 * @param {any} facts
 */
export function judge(checks, facts) {
  return checks.map(({ name, at }) => {
    const { of, holds, say } = CHECKS[name],
      now = of(facts),
      known = isKnown(now);
    return { holds: known && Boolean(holds(now, at)), now: known ? say(now, facts) : "–" };
  });
}

const STEPS = 200; // places of a gauge at which its check is asked

/**
 * How far a check is, on a gauge from 0 to 1: where its value is now, and from where to where it holds. Null where
 * there is nothing to measure.
 *
 * @param {{ name: string, at: number }} check
 * @param {any} facts
 */
export function gaugeOf({ name, at }, facts) {
  const { of, holds, scale, log } = CHECKS[name],
    value = of(facts);
  if (!scale || !isKnown(value)) return null;
  const way = (v) => (log ? Math.log(Math.max(v, 1e-9)) : v),
    [start, end] = scale.map(way),
    valueAt = (t) => (log ? Math.exp(start + t * (end - start)) : start + t * (end - start)),
    held = Array.from({ length: STEPS + 1 }, (_, k) => k / STEPS).filter((t) => holds(valueAt(t), at));
  const now = Math.min(1, Math.max(0, (way(value) - start) / (end - start)));
  return { now, from: held[0] ?? 1, to: held.at(-1) ?? 1 };
}
