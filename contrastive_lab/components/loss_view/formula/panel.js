// The chosen anchor's numbers put into its loss, term by term. It follows the knob at each frame.

import { drawDerivative } from "./derivative.js";
import { pairLines, tripletLines } from "./hinge.js";
import { TERMS, lightKnob, n, typeset } from "./mathml.js";
import { softmaxLines } from "./softmax.js";
import { isFar, isHinge, isPlainSoftmax, ranked } from "../pairs.js";
import { sizeCanvas } from "../../shared/canvas.js";
import { el, say } from "../../shared/dom.js";
import { _ } from "../../shared/locale.js";

/** @param {LossViewState} lab */
export function drawFormula(lab) {
  const { canvas, note } = lab.panels.formula,
    i = lab.anchor,
    o = lab.out,
    curve = Boolean(lab.kernel) && lab.kernel.form === "pair";
  canvas.hidden = !curve;
  if (curve) drawDerivative(lab, ...sizeCanvas(canvas));
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
      ? _("The numbers of anchor {anchor}, largest terms of each sum first.", { anchor: lab.meta.names[i] })
      : _("Anchor {anchor} lacks a positive or a negative: its loss is undefined. Choose another row.", {
          anchor: lab.meta.names[i],
        }),
  );
  const rows = lines.map(([title, formula]) => el("div", {}, el("span", {}, title), typeset(formula)));
  become(lab.worked, el("div", {}, ...rows));
}

/**
 * What the loss gives a pair, in letters; the knob's is lit while it is dragged, here and in the panel.
 *
 * @param {LossViewState} lab
 */
export function drawLetters(lab) {
  const text = lettersOf(lab.kernel);
  lab.lettersBox.hidden = !text;
  if (lab.lettersBox.dataset.text !== text) lab.letters.replaceChildren(...(text ? [typeset(text)] : []));
  lab.lettersBox.dataset.text = text;
  lightKnob(lab);
}

/** @param {Kernel | null} kernel */
function lettersOf(kernel) {
  if (kernel?.family === "hinge")
    return kernel.form === "triplet"
      ? "L = max (0, D_p − D_n + ε)"
      : kernel.squared
        ? "L_n = max (0, ε − D^2)"
        : "L_n = 1/2 · max (0, ε − D)^2";
  if (kernel?.family === "sigmoid") return "p_n = 1/{1 + e^{− (s_n ∕ τ + b)}}";
  if (kernel?.family !== "softmax") return "";
  const isHard = kernel.negatives === "hard",
    over = kernel.knob ? " ∕ τ" : "",
    power = (j) => `e^{${kernel.sign === -1 ? "− f" : isHard ? "(1 + β) s" : "s"}_${j}${over}}`;
  return isPlainSoftmax(kernel) ? `p_j = {${power("j")}}/{∑⌄k ${power("k")}}` : `p_j ∝ ${power("j")}`;
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
    `${letter}_ij = ${n(S[at + j])} , {∂L_i}/{∂${letter}_ij} = ${n(out.grad[at + j])}`,
  ]);
  return [...lines, [_("Its loss"), `L_i = ${n(out.loss[i])}`]];
}
