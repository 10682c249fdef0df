// What a lesson's checks look at, of the live loss view.

import { pullOf } from "./figures.js";
import { shares } from "./gradients.js";
import { positivesOf } from "./pairs.js";

/**
 * `share`: of the push on negatives that the hardest one gets; `negatives`: those that matter, or are pushed; `ratio`:
 * of push to pull.
 *
 * @param {LossViewState} lab
 */
export function lessonFacts(lab) {
  const { out, anchor, meta, kernel } = lab;
  if (!out || !lab.n) return {};
  const { total, hardest, curve } = shares(lab),
    pull = pullOf(out, lab.M, anchor, lab.w),
    itself = meta.columnNames.indexOf(meta.names[anchor]);
  return {
    otherView: itself >= 0 && lab.M[meta.lesson.first * lab.w + itself] === 1,
    share: total > 0 ? curve[0] : 0,
    hardest: hardest === undefined ? "" : meta.columnNames[hardest],
    negatives: out.effective[anchor],
    positives: positivesOf(lab).length,
    form: kernel && (kernel.aggregate ?? kernel.form),
    family: kernel?.family,
    temperature: kernel?.temperature,
    isHard: kernel?.negatives === "hard",
    leftOut: out.leftOut?.[anchor] ?? 0,
    ratio: pull > 0 ? total / pull : NaN,
  };
}
