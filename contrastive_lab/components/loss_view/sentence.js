// What the knob does to the chosen anchor, in one plain sentence.

import { few } from "./figures.js";
import { shares } from "./gradients.js";
import { isHinge } from "./pairs.js";
import { percent } from "../shared/dom.js";
import { knobText } from "../shared/knob.js";

const NEARLY_ALL = 0.9; // of the negatives that count
const ALIKE = 2; // times an equal share: what the hardest gets less than where all are pushed about alike

/**
 * @param {LossViewState} lab
 */
export function sentence(lab) {
  const o = lab.out,
    i = lab.anchor;
  if (!o || !lab.n) return "";
  const knob = lab.meta.knob,
    at = knob ? `At ${knob.label.split(",")[0]} = ${knobText(lab.value)}, ` : "Here, ";
  const name = lab.meta.names[i] ?? `image ${i + 1}`;
  if (!lab.M.subarray(i * lab.w, (i + 1) * lab.w).includes(1))
    return `${name} has no positive in this batch: the loss leaves it out.`;
  if (!o.negatives[i]) return `${name} has no negative in this batch: nothing is pushed away.`;
  return at + (isHinge(lab) ? ofHinge(lab, o, i) : ofSoftmax(lab, o, i));
}

function ofSoftmax(lab, o, i) {
  const n = o.negatives[i],
    counted = o.effective[i],
    { total, hardest, curve } = shares(lab);
  if (!(total > 0))
    return lab.kernel // a softmax pushes every negative, though by less than a float can hold
      ? `the push is too small to count, so near is the positive; it falls on ${few(counted)} of ${n} negatives.`
      : "no negative is pushed: the positive is as near as it has to be.";
  const name = nameOf(lab, hardest),
    part = percent(curve[0]),
    times = curve[0] * n;
  if (n === 1) return `the only negative, ${name}, gets all of the push.`;
  if (counted > NEARLY_ALL * n)
    return times < ALIKE
      ? `all ${n} negatives are pushed about alike; the hardest, ${name}, gets ${part}.`
      : `all ${n} negatives are pushed; the hardest, ${name}, gets ${part}, ${times.toFixed(1)} times an equal share.`;
  return `the hardest negative, ${name}, gets ${part} of the push; ${few(counted)} of ${n} negatives matter.`;
}

function ofHinge(lab, o, i) {
  const n = o.negatives[i],
    pushed = o.effective[i],
    rest = n - pushed;
  if (!pushed) return `none of ${n} negatives is near enough to be pushed: the loss asks no more of this anchor.`;
  const left = rest ? `the other ${rest} ${rest === 1 ? "is" : "are"} left alone` : "none is left alone",
    name = nameOf(lab, shares(lab).hardest);
  return `the loss pushes ${pushed} of ${n} negatives, ${name} the hardest; ${left}.`;
}

/** @param {LossViewState} lab */
function nameOf(lab, j) {
  return (lab.meta.columnNames || lab.meta.names)[j] ?? `image ${j + 1}`;
}
