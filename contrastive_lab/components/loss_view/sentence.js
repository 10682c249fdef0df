// What the knob does to the chosen anchor, in one plain sentence.

import { few, pullOf } from "./figures.js";
import { shares } from "./gradients.js";
import { candidateText, isHinge, sameText } from "./pairs.js";
import { number, percent } from "../shared/dom.js";
import { knobText, symbolOf } from "../shared/knob.js";
import { _ } from "../shared/locale.js";

const NEARLY_ALL = 0.9; // of the negatives that count
const HARDLY = 0.01; // of 1/τ, the largest gradient of a pair: where all negatives get less, hardly any is pushed
const ALIKE = 2; // times an equal share: what the hardest gets less than where all are pushed about alike

/** @param {LossViewState} lab */
export function sentence(lab) {
  const o = lab.out,
    i = lab.anchor;
  if (!o || !lab.n) return "";
  const knob = lab.meta.knob;
  const name = lab.meta.names[i] ?? _("row {number}", { number: i + 1 });
  if (!o.weight[i] && !lab.M.subarray(i * lab.w, (i + 1) * lab.w).includes(1))
    return _("{name} has no positive in this batch: the loss leaves it out.", { name });
  if (!o.negatives[i] && !o.leftOut[i])
    return _("{name} has no negative in this batch: nothing is pushed away.", { name });
  const text = ofLoss(lab, o, i) + leftOut(lab, o, i) + ofTexts(lab, o, i);
  return knob ? _("{name}: {text}", { name: `${symbolOf(knob)} = ${knobText(lab.value)}`, text }) : text;
}

function ofLoss(lab, o, i) {
  if (!o.negatives[i])
    return o.leftOut[i] === 1
      ? _("The margin leaves out the only negative: nothing is pushed away.")
      : _("All {n} negatives are left out by the margin: nothing is pushed away.", { n: o.leftOut[i] });
  if (isHinge(lab)) return ofHinge(lab, o, i);
  return lab.kernel?.family === "sigmoid" ? ofSigmoid(lab, o, i) : ofSoftmax(lab, o, i);
}

/** How many negatives say what a positive says: a right answer that the loss pushes away. */
function ofTexts(lab, o, i) {
  const count = sameText(lab).length;
  if (!count) return "";
  const n = o.negatives[i] + o.leftOut[i];
  return _(" {count} of {n} negatives have the same text as the positive.", { count, n });
}

/** How many negatives the margin leaves out, of the anchor and of the batch. */
function leftOut({ kernel }, o, i) {
  const margin = kernel?.negative_margin ?? null,
    share = kernel?.positive_share ?? null;
  if (margin === null && share === null) return "";
  const sum = (counts) => counts.reduce((total, count) => total + count, 0),
    all = sum(o.leftOut),
    total = all + sum(o.negatives);
  if (!all && share !== null)
    return _(" No negative of the batch ({total}) is more similar than {share} of the positive.", { total, share });
  if (!all)
    return _(" No negative of the batch ({total}) is left out: none is more similar than the positive by {margin}.", {
      total,
      margin,
    });
  return _(" Left out, as they may be false: {count} of {n} negatives of this anchor, {all} of {total} in the batch.", {
    count: o.leftOut[i],
    n: o.negatives[i] + o.leftOut[i],
    all,
    total,
  });
}

function ofSoftmax(lab, o, i) {
  const n = o.negatives[i],
    { total, counted } = shares(lab);
  if (!(total > 0)) {
    const pulls = moves(lab, 1),
      pushes = moves(lab, 2);
    if (!lab.kernel && pulls && !pushes)
      return _("The loss pushes no negative of this batch: it only pulls positives together.");
    if (!lab.kernel && !pulls && !pushes && o.loss[i] > 0)
      return _("This loss does not pull or push single pairs of rows: it compares the dimensions of the whole batch.");
    return lab.kernel // a softmax pushes every negative, though by less than a float can hold
      ? _(
          "The gradient is close to zero because the positive is already very similar. It acts on {counted} of " +
            "{n} negatives.",
          { counted: few(counted), n },
        )
      : _("No negative is pushed: the positive is close enough.");
  }
  return ofShares(lab, n);
}

/** The push of a sigmoid is not normalized, so its size is told beside its shares. */
function ofSigmoid(lab, o, i) {
  const { total, hardest, curve } = shares(lab),
    sizes = { push: number(total), pull: number(pullOf(o, lab.M, i, lab.w)) };
  if (total * lab.kernel.temperature >= HARDLY)
    return ofShares(lab, o.negatives[i]) + _(" Total push on negatives: {push}; total pull: {pull}.", sizes);
  const told = _("Negatives are hardly pushed: the total push is {push}, the total pull {pull}.", sizes);
  if (hardest === undefined) return told;
  const hardestOne = { name: nameOf(lab, hardest), part: percent(curve[0]) };
  return told + _(" The hardest negative, {name}, gets {part} of that push.", hardestOne);
}

/**
 * How the push is shared among n negatives.
 *
 * @param {LossViewState} lab
 * @param {number} n
 */
function ofShares(lab, n) {
  const { hardest, curve, counted } = shares(lab);
  const name = nameOf(lab, hardest),
    part = percent(curve[0]),
    times = curve[0] * n;
  if (n === 1) return _("The only negative, {name}, gets the whole push.", { name });
  if (counted > NEARLY_ALL * n)
    return times < ALIKE
      ? _("All {n} negatives are pushed about equally; the hardest, {name}, gets {part}.", { n, name, part })
      : _("All {n} negatives are pushed; the hardest, {name}, gets {part}, {times} times an equal share.", {
          n,
          name,
          part,
          times: times.toFixed(1),
        });
  return _("The hardest negative, {name}, gets {part} of the push on negatives; {counted} of {n} matter.", {
    name,
    part,
    counted: few(counted),
    n,
  });
}

function ofHinge(lab, o, i) {
  const n = o.negatives[i],
    pushed = o.effective[i];
  if (!pushed) return _("None of the {n} negatives is close enough to be pushed: this anchor meets the margin.", { n });
  const name = nameOf(lab, shares(lab).hardest);
  return _("The loss pushes {pushed} of {n} negatives. The hardest is {name}.", { pushed, n, name });
}

/**
 * Whether any pair of the batch of this kind, 1 positive or 2 negative, has a gradient.
 *
 * @param {LossViewState} lab
 * @param {number} kind
 */
function moves({ M, out }, kind) {
  return M.some((m, j) => m === kind && out.grad[j] !== 0);
}

/** What a sentence calls a candidate: a text loses its full stop. @param {LossViewState} lab */
function nameOf(lab, j) {
  const name =
    (lab.meta.columnNames ? candidateText(lab, j) : lab.meta.names[j]) ?? _("row {number}", { number: j + 1 });
  return name.replace(/[.。\s]+(?=\u2069?$)/, "");
}
