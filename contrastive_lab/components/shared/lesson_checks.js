// When a lesson is done: named checks of the state that a live view is in. contrastive_lab/loss_lab/lessons.py
// names them with their thresholds.

import { number, percent } from "./dom.js";

const count = (x) => (x < 9.95 && !Number.isInteger(x) ? x.toFixed(1) : x.toFixed(0));

/**
 * Each check: the value it looks at, when it holds, and how the value is said.
 *
 * @typedef {{ of: (facts: any) => any, holds: (now: any, at: number) => boolean, say: (now: any) => string }} Check
 * @type {Record<string, Check>}
 */
export const CHECKS = {
  other_view: { of: (f) => f.otherView, holds: (now) => now, say: String },
  alignment_below: { of: (f) => f.alignment, holds: (now, at) => now < at, say: number },
  hardest_share_above: { of: (f) => f.share, holds: (now, at) => now > at, say: percent },
  negatives_at_least: { of: (f) => f.negatives, holds: (now, at) => now >= at, say: count },
  pairs_pushed_from_one_to: {
    of: (f) => (f.form === "pair" ? f.negatives : NaN),
    holds: (now, at) => now >= 1 && now <= at,
    say: count,
  },
  triplets_pushed_at_least: {
    of: (f) => (f.form === "triplet" ? f.negatives : NaN),
    holds: (now, at) => now >= at,
    say: count,
  },
  positives_at_least: { of: (f) => f.positives, holds: (now, at) => now >= at, say: count },
  collapsed_without_stop_gradient: {
    of: (f) => f.spreadWithoutStopGradient,
    holds: (now, at) => now < at,
    say: number,
  },
  collapsed_without_predictor: { of: (f) => f.spreadWithoutPredictor, holds: (now, at) => now < at, say: number },
  steps_with_both_at_least: { of: (f) => f.stepsWithBoth, holds: (now, at) => now >= at, say: count },
  variance_share_below: { of: (f) => f.varianceShare, holds: (now, at) => now < at, say: percent },
  off_diagonal_share_above: { of: (f) => f.offDiagonalShare, holds: (now, at) => now > at, say: percent },
  weighted_share_above: { of: (f) => (f.isHard ? f.share : NaN), holds: (now, at) => now > at, say: percent },
  left_out_at_least: { of: (f) => f.leftOut, holds: (now, at) => now >= at, say: count },
  // what is said is the ratio; what has to be reached is the temperature
  softmax_cooled_to: {
    of: (f) => (f.family === "softmax" && f.ratio > 0 ? f : NaN),
    holds: (now, at) => now.temperature <= at,
    say: (now) => now.ratio.toFixed(2),
  },
  sigmoid_balanced_within: {
    of: (f) => (f.family === "sigmoid" ? f.ratio : NaN),
    holds: (now, at) => now >= 1 / at && now <= at,
    say: (now) => (now < 1000 ? now.toFixed(2) : now.toExponential(0)),
  },
  form_is_in: { of: (f) => f.form, holds: (now) => now === "in", say: String },
};

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
      known = now !== undefined && now !== null && !Number.isNaN(now);
    return { holds: known && Boolean(holds(now, at)), now: known ? say(now) : "–" };
  });
}
