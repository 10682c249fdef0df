// The chosen anchor's numbers put into its loss, term by term. It follows the knob at each frame.

import { drawDerivative } from "./derivative.js";
import { pairLines, tripletLines } from "./hinge.js";
import { TERMS, m, mn, mo, over, row, subscript } from "./mathml.js";
import { softmaxLines } from "./softmax.js";
import { isFar, isHinge, isPlainSoftmax, ranked } from "../pairs.js";
import { sizeCanvas } from "../../shared/canvas.js";
import { el, say } from "../../shared/dom.js";
import { _ } from "../../shared/locale.js";

/**
 * @param {LossViewState} lab
 */
export function drawFormula(lab) {
  const { canvas, note } = lab.panels.formula,
    i = lab.anchor,
    o = lab.out,
    curve = Boolean(lab.kernel) && lab.kernel.form === "pair";
  canvas.hidden = !curve;
  const lines =
    !o || !(o.weight[i] > 0)
      ? []
      : !lab.kernel || !(isPlainSoftmax(lab.kernel) || isHinge(lab))
        ? libraryLines(lab)
        : isPlainSoftmax(lab.kernel)
          ? softmaxLines(lab)
          : lab.kernel.form === "pair"
            ? pairLines(lab)
            : tripletLines(lab);
  say(
    note,
    lines.length
      ? _("The numbers of anchor {anchor}, largest terms of each sum first.", {
          anchor: lab.meta.names[i],
        })
      : _("The loss is undefined for anchor {anchor}: it lacks a partner. Choose another row of the matrix.", {
          anchor: lab.meta.names[i],
        }),
  );
  become(
    lab.worked,
    el(
      "div",
      {},
      ...lines.map(([title, ...math]) =>
        el("div", {}, el("span", {}, title), el("div", { class: "terms" }, ...pieces(math).map(typeset))),
      ),
    ),
  );
  if (!curve) return;
  const [g, width, height] = sizeCanvas(canvas);
  drawDerivative(lab, g, width, height);
  canvas.setAttribute(
    "aria-label",
    _("Loss of a positive and of a negative pair, and their derivatives, over the distance."),
  );
}

/** A line of terms cut before each sign of equality or addition, where a narrow panel may break it. */
function pieces(math) {
  const cut = [[]];
  for (const node of math.flatMap((term) => (isSum(term) ? [...term.childNodes] : [term]))) {
    if (node.nodeName === "mo" && "=+".includes(node.textContent) && cut.at(-1).length) {
      node.setAttribute("form", "infix"); // as before the cut
      cut.push([]);
    }
    cut.at(-1).push(node);
  }
  return cut;
}

function isSum(term) {
  return term.nodeName === "mrow" && [...term.childNodes].some((node) => node.textContent === "+");
}

function typeset(terms) {
  const style = m("mstyle", ...terms);
  style.setAttribute("displaystyle", "true");
  return m("math", style);
}

/** Change what differs: while a knob is dragged that is a few numbers, and nothing else moves. */
function become(old, made) {
  if (old.nodeType === Node.TEXT_NODE && made.nodeType === Node.TEXT_NODE) {
    if (old.data !== made.data) old.data = made.data;
  } else if (old.nodeName !== made.nodeName) old.replaceWith(made);
  else if (old.childNodes.length !== made.childNodes.length) old.replaceChildren(...made.childNodes);
  else [...made.childNodes].forEach((node, k) => become(old.childNodes[k], node));
}

/** A loss without lines of its own: what was found for each of the largest pairs. */
function libraryLines(lab) {
  const { anchor: i, w, S, M, out } = lab,
    at = i * w,
    rank = ranked(lab),
    letter = isFar(lab) ? "D" : "s";
  const kinds = [rank.filter((j) => M[at + j] === 1), rank.filter((j) => M[at + j] === 2)].flatMap((all) =>
    all.slice(0, TERMS),
  );
  const lines = kinds.map((j) => [
    `${M[at + j] === 1 ? _("Positive") : _("Negative")} ${lab.meta.columnNames[j]}`,
    subscript(letter, "ij"),
    mo("="),
    mn(S[at + j]),
    mo(","),
    over(row(mo("∂"), subscript("L", "i")), row(mo("∂"), subscript(letter, "ij"))),
    mo("="),
    mn(out.grad[at + j]),
  ]);
  return [...lines, [_("Its loss"), subscript("L", "i"), mo("="), mn(out.loss[i])]];
}
