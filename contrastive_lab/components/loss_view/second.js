// The second setting: another form, loss or rows on the same batch, or another knob.

import { isHinge, isPlainSoftmax } from "./pairs.js";
import { N_ } from "../shared/locale.js";

/** The forms that a second setting may take on the same scores. */
const FORMS = {
  softmax: {
    same: [N_("the same loss"), {}],
    out: [N_("all in one denominator (NT-Xent, SupCon out)"), { denominator: "all", aggregate: "out" }],
    in: [N_("mean inside the log (SupCon in)"), { denominator: "all", aggregate: "in" }],
    own: [N_("each positive on its own (InfoNCE)"), { denominator: "own_positive", aggregate: "out" }],
  },
  pair: {
    same: [N_("the same loss"), {}],
    plain: [N_("hinge on the distance"), { squared: false }],
    squared: [N_("hinge on the squared distance"), { squared: true }],
  },
  triplet: {
    same: [N_("the same loss"), {}],
    all: [N_("all triplets"), { mining: "all" }],
    semi_hard: [N_("semi-hard triplets"), { mining: "semi_hard" }],
    hard: [N_("the hardest triplet"), { mining: "hard" }],
  },
};

/**
 * @param {LossViewState} lab
 * @returns {Record<string, any[]>}
 */
export function formsOf(lab) {
  if (!lab.kernel) return {};
  return isPlainSoftmax(lab.kernel) || isHinge(lab)
    ? FORMS[lab.kernel.form || "softmax"]
    : { same: FORMS.softmax.same };
}

/**
 * Scores, kernel and knob of the second setting; without `S` it waits for the server.
 *
 * @param {LossViewState} lab
 * @param {any} forms
 */
export function settingOf(lab, forms) {
  const { choice } = lab.second,
    form = forms[choice],
    given = !form && lab.given && lab.given.choice === choice ? lab.given : null;
  const two = form
    ? { S: lab.S, M: lab.M, kernel: { ...lab.kernel, ...form[1] }, knob: lab.kernel.knob ? lab.meta.knob : null }
    : given
      ? { ...given, kernel: given.kernel && { ...given.kernel } }
      : {};
  two.value = lab.second.value ?? (two.knob ? (form ? lab.value : two.knob.value) : null);
  if (two.knob) two.value = Math.min(two.knob.high, Math.max(two.knob.low, two.value));
  two.stale = true;
  return two;
}
