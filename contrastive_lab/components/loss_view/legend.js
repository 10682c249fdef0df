// The matrix in words: its legend, its label, and the pair that is pointed at.

import { VIEWS } from "./choices.js";
import { shares } from "./gradients.js";
import { isFar, isHinge } from "./pairs.js";
import { isAsked } from "./question.js";
import { APART } from "./shades.js";
import { thumb } from "./thumbnails.js";
import { GRAY, GREEN, rgb, sizeCanvas } from "../shared/canvas.js";
import { el, say } from "../shared/dom.js";
import { PULL, PUSH, mark } from "../shared/push_pull.js";

/**
 * Legend and label of the matrix, when they are others than before.
 *
 * @param {LossViewState} lab
 */
export function tell(lab) {
  const name = [lab.view, lab.overlay, isHinge(lab), isFar(lab), lab.key].join(),
    marked = lab.overlay || lab.view === "mask",
    blank = lab.overlay ? "tint alone" : "blank";
  if (lab.toldOf === name) return;
  lab.toldOf = name;
  lab.matrix.setAttribute(
    "aria-label",
    `${VIEWS[lab.view]}: ${lab.n} anchors by ${lab.w} candidates. ` +
      "Up and down choose the anchor, left and right a candidate.",
  );
  const item = (color, text, alpha = 1) => {
    const i = el("i", {});
    i.style.background = rgb(color, alpha);
    return el("span", {}, i, text);
  };
  const look = (kind, text) => el("span", {}, mark(kind), text);
  const positive = [look(PULL, "positive"), look(PUSH, "negative")],
    itself = item(GRAY, "itself", 0.75);
  if (lab.view === "score")
    lab.legend.replaceChildren(
      ...(lab.overlay ? positive : [item(GREEN, isFar(lab) ? "dark: near" : "dark: similar")]),
      itself,
    );
  else if (lab.view === "grad")
    lab.legend.replaceChildren(
      look(PULL, "pulled nearer"),
      look(PUSH, "pushed away"),
      itself,
      el("span", {}, `${blank}: not moved`),
    );
  else if (lab.view === "weight" && isHinge(lab))
    lab.legend.replaceChildren(
      look(PULL, "positive, pulled"),
      look(PUSH, "negative, still pushed"),
      itself,
      el("span", {}, `${blank}: no longer moved`),
    );
  else
    lab.legend.replaceChildren(
      ...positive,
      itself,
      ...(lab.view === "weight" ? [el("span", {}, "the stronger, the more weight")] : []),
    );
  if (!lab.M.includes(3)) itself.remove();
  if (lab.M.includes(0))
    lab.legend.append(marked ? item(GRAY, "not compared", APART) : el("span", {}, "blank: not compared"));
  if (lab.overlay && lab.view !== "score" && lab.view !== "mask")
    lab.legend.append(el("span", {}, "tint: positive (blue), negative (orange)"));
}

/**
 * The pair that is pointed at, or the anchor with its hardest negative: in words, and as images.
 *
 * @param {LossViewState} lab
 */
export function describe(lab) {
  const hardest = lab.hover || !lab.out ? undefined : shares(lab).hardest,
    [i, j] = lab.hover || [lab.anchor, hardest ?? null];
  say(lab.hint, lab.hover ? inWords(lab, i, j) : atFirst(lab, i, j));
  if (!lab.sprite) return;
  const [g, , side] = sizeCanvas(lab.faces),
    { rowThumb, columnThumb } = lab.meta;
  g.imageSmoothingEnabled = false;
  if (i !== null) thumb(lab, g, rowThumb[i], 0, 0, side);
  if (j !== null) thumb(lab, g, columnThumb[j], side + 8, 0, side);
}

function atFirst(lab, i, j) {
  const { names, columnNames } = lab.meta;
  const pair = j === null ? `Anchor: ${names[i]}.` : `Its hardest negative: ${columnNames[j]} · ${numbers(lab, i, j)}.`;
  return `${pair} Point at another pair; click a cell, or use the arrow keys, to choose its anchor.`;
}

function inWords(lab, i, j) {
  const { names, columnNames } = lab.meta;
  if (isAsked(lab) && i === lab.anchor && j !== null) return "Is this the other view? Click the bar, or press Enter.";
  if (i === null || j === null) return i === null ? columnNames[j] : names[i];
  const what = ["not compared", "positive", "negative", "itself"][lab.M[i * lab.w + j]];
  return `${names[i]} → ${columnNames[j]} · ${what} · ${numbers(lab, i, j)}`;
}

function numbers(lab, i, j) {
  const k = i * lab.w + j,
    m = lab.M[k],
    parts = [`${lab.meta.scoreName} ${lab.S[k].toFixed(4)}`];
  if (lab.out && (m === 1 || m === 2))
    parts.push(`weight ${lab.out.pair[k].toPrecision(3)}`, `gradient ${lab.out.grad[k].toPrecision(3)}`);
  return parts.join(" · ");
}
