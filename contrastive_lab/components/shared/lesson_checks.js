// When a lesson is done: named checks of the state that a live view is in. contrastive_lab/loss_lab/lessons.py
// names them with their thresholds.

import { number, percent } from "./dom.js";

const count = (x) => (x < 9.95 && !Number.isInteger(x) ? x.toFixed(1) : x.toFixed(0));

const above = (now, at) => now > at,
  below = (now, at) => now < at,
  atLeast = (now, at) => now >= at,
  within = (now, at) => now >= 1 / at && now <= at,
  fromOne = (now, at) => now >= 1 && now <= at;

/**
 * A check: the value it looks at, when it holds, how the value is said, and the ends of its gauge; `log`: a gauge of
 * ratios.
 *
 * @param {(facts: any) => any} of
 * @param {(now: any, at: number) => boolean} holds
 * @param {(now: any, facts: any) => string} words
 * @param {[number, number]} [scale]
 * @param {boolean} [log]
 */
const check = (of, holds, words, scale, log) => ({ of, holds, say: words, scale, log });

/** The value where the state is of a kind; else there is none. */
const only = (isOfKind, value) => (isOfKind ? value : NaN);

const ratio = (now) => (now < 1000 ? now.toFixed(2) : now.toExponential(0));

export const CHECKS = {
  other_view: check((f) => f.otherView, Boolean, String),
  alignment_below: check((f) => f.alignment, below, number, [2, 0.01], true),
  hardest_share_above: check((f) => f.share, above, percent, [0, 1]),
  negatives_at_least: check((f) => f.negatives, atLeast, count, [0, 20]),
  pairs_pushed_from_one_to: check((f) => only(f.form === "pair", f.negatives), fromOne, count, [12, 0]),
  triplets_pushed_at_least: check((f) => only(f.form === "triplet", f.negatives), atLeast, count, [0, 8]),
  positives_at_least: check((f) => f.positives, atLeast, count),
  collapsed_without_stop_gradient: check((f) => f.spreadWithoutStopGradient, below, number, [1, 0]),
  collapsed_without_predictor: check((f) => f.spreadWithoutPredictor, below, number, [1, 0]),
  steps_with_both_at_least: check((f) => f.stepsWithBoth, atLeast, count, [0, 600]),
  // at γ = 0 there is no hinge to compare
  variance_share_below: check((f) => only(f.deviation > 0, f.varianceShare), below, percent, [1, 0]),
  off_diagonal_share_above: check((f) => f.offDiagonalShare, above, percent, [0, 1]),
  weighted_share_above: check((f) => only(f.isHard, f.share), above, percent, [0, 1]),
  left_out_at_least: check((f) => f.leftOut, atLeast, count, [0, 8]),
  // what is said is the ratio; what has to be reached is the temperature
  softmax_cooled_to: check(
    (f) => only(f.family === "softmax" && f.ratio > 0, f.temperature),
    (now, at) => now <= at,
    (_now, f) => f.ratio.toFixed(2),
    [1, 0.05],
    true,
  ),
  sigmoid_balanced_within: check((f) => only(f.family === "sigmoid", f.ratio), within, ratio, [0.1, 1000], true),
  // with one positive both forms are the same
  form_is_in: check(
    (f) => only(f.positives > 1, f.form),
    (now) => now === "in",
    String,
  ),
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
