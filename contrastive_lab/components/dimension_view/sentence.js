// What the loss does on this batch, in a sentence, and what to know of weights of zero and of many dimensions.

import { TERMS, totalOf } from "./terms.js";
import { percent } from "../shared/dom.js";
import { N_, _ } from "../shared/locale.js";

/** What a weight of zero leaves undone. */
const AT_ZERO = {
  off_diagonal: N_("λ is 0: nothing keeps dimensions apart, so all of them may become copies of one."),
  invariance: N_("λ is 0: nothing brings the two views of an image together."),
  variance: N_("μ is 0: nothing keeps dimensions from shrinking, so the embedding may collapse to a point."),
  covariance: N_("ν is 0: nothing keeps two dimensions from varying together."),
  deviation: N_("γ is 0: no dimension varies too little, so the variance term is 0."),
  trade_off: N_("λ is 0: nothing keeps the embedding from shrinking to one point."),
};
const AT_ONE = N_("λ is 1: nothing brings the two views of an image together.");

/** @param {any} lab */
export function sentence({ terms, found, knobs }) {
  const notes = notesOf(found, knobs).map((note) => ` ${note}`);
  return [largest(terms), ...notes].join("");
}

function largest(terms) {
  const total = totalOf(terms);
  if (!(total > 0)) return _("The loss is 0, so nothing moves.");
  const top = terms.reduce((a, b) => (b.part > a.part ? b : a)),
    values = { term: _(TERMS[top.key].name), share: percent(top.part / total) };
  return _("Largest term: {term}, {share} of the loss.", values);
}

/**
 * One sentence for each thing to know.
 *
 * @param {any} found as dimensionsOf gives it
 * @param {Record<string, number>} knobs
 */
export function notesOf({ form, n, d }, knobs) {
  const notes = Object.keys(AT_ZERO)
    .filter((name) => knobs[name] === 0)
    .map((name) => _(AT_ZERO[name]));
  if (form === "gaussian") return knobs.trade_off === 1 ? [_(AT_ONE)] : notes;
  if (["invariance", "variance", "covariance"].every((name) => knobs[name] === 0))
    notes.splice(0, notes.length, _("All three weights are 0: the loss is 0 for any embedding."));
  const values = { d, n, rank: n - 1 };
  if (d >= n && form === "correlation")
    notes.push(
      _(
        "{d} dimensions but {n} images: the correlation has rank {rank} at most, so it cannot be the identity.",
        values,
      ),
    );
  else if (d >= n)
    notes.push(
      _(
        "{d} dimensions but {n} images: the covariance has rank {rank} at most, so some dimensions vary together.",
        values,
      ),
    );
  return notes;
}
