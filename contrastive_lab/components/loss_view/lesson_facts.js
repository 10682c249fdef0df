// What a lesson's checks look at, of the live loss view.

import { shares } from "./gradients.js";
import { positivesOf } from "./pairs.js";

/** The push on the anchor's negatives over the pull on its positives; NaN without a pull. */
function pushOverPull({ out, M, anchor, w }) {
  let push = 0,
    pull = 0;
  for (let k = anchor * w; k < (anchor + 1) * w; k++)
    if (M[k] === 2) push += out.grad[k];
    else if (M[k] === 1) pull -= out.grad[k];
  return pull > 0 ? push / pull : NaN;
}

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
    ratio: pushOverPull(lab),
  };
}
