// The terms of the loss: each with its value, its weight and its share, as a table and as a bar.

import { BLUE, GREEN, ORANGE, rgb } from "../shared/canvas.js";
import { el, number, percent, say } from "../shared/dom.js";
import { knobText } from "../shared/knob.js";
import { N_, _ } from "../shared/locale.js";

export const TERMS = {
  on: { name: N_("On the diagonal"), color: GREEN, letter: "" },
  off: { name: N_("Off the diagonal"), color: ORANGE, letter: "λ" },
  invariance: { name: N_("Invariance"), color: BLUE, letter: "λ" },
  variance: { name: N_("Variance hinge"), color: GREEN, letter: "μ" },
  distance: { name: N_("Invariance"), color: BLUE, letter: "1 − λ" },
  gaussian: { name: N_("Gaussian term"), color: ORANGE, letter: "λ" },
  covariance: { name: N_("Covariance"), color: ORANGE, letter: "ν" },
};

/**
 * The loss of the batch.
 *
 * @param {{ part: number }[]} terms
 */
export function totalOf(terms) {
  return terms.reduce((sum, term) => sum + term.part, 0);
}

/** @param {any} lab */
export function drawTerms(lab) {
  const total = totalOf(lab.terms),
    keys = lab.terms.map((term) => term.key).join();
  if (lab.termsOf !== keys) build(lab, keys);
  lab.terms.forEach((term, k) => {
    const { cells, piece } = lab.rows[k],
      share = total > 0 ? term.part / total : 0,
      letter = TERMS[term.key].letter;
    say(cells[0], letter ? `${letter} ${knobText(term.weight)} × ${number(term.value)}` : number(term.value));
    say(cells[1], number(term.part));
    say(cells[2], total > 0 ? percent(share) : "–");
    piece.style.flexGrow = String(share);
  });
  say(lab.total, number(total));
  lab.bar.hidden = !(total > 0);
  lab.bar.style.display = total > 0 ? "flex" : "none";
}

/** The rows of the table and the pieces of the bar. */
function build(lab, keys) {
  lab.termsOf = keys;
  lab.rows = lab.terms.map(({ key }) => {
    const { name, color } = TERMS[key],
      piece = el("div", {}),
      cells = [0, 1, 2].map(() => el("td", {})),
      mark = el("i", {});
    piece.style.cssText = `flex:0 1 0;background:${rgb(color)}`;
    mark.style.cssText = "display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px";
    mark.style.background = rgb(color);
    return { cells, piece, row: el("tr", {}, el("th", { scope: "row" }, mark, _(name)), ...cells) };
  });
  const heads = [_("Term"), _("Weight × value"), _("In the loss"), _("Share")],
    columns = heads.map((name) => el("th", { scope: "col" }, name));
  columns[0].style.textAlign = "start"; // above names, not numbers
  lab.total = el("td", { class: "loss" });
  lab.table.replaceChildren(
    el("thead", {}, el("tr", {}, ...columns)),
    el(
      "tbody",
      {},
      ...lab.rows.map(({ row }) => row),
      el("tr", {}, el("th", { scope: "row" }, _("Loss of the batch")), el("td", {}), lab.total, el("td", {})),
    ),
  );
  lab.bar.replaceChildren(...lab.rows.map(({ piece }) => piece));
}
