// The matrix in words: its legend, its label, and the pair that is pointed at.

import { VIEWS } from "./choices.js";
import { shares } from "./gradients.js";
import { isFar, isHinge, isLeftOut } from "./pairs.js";
import { isAsked } from "./question.js";
import { APART, LEFT_OUT } from "./shades.js";
import { thumb } from "./thumbnails.js";
import { GRAY, GREEN, rgb, sizeCanvas } from "../shared/canvas.js";
import { el, isTouched, say } from "../shared/dom.js";
import { PULL, PUSH, mark } from "../shared/push_pull.js";
import { _ } from "../shared/locale.js";

/**
 * Legend and label of the matrix, when they are others than before.
 *
 * @param {LossViewState} lab
 */
export function tell(lab) {
  const hasLeftOut = lab.out?.leftOut?.some((count) => count > 0),
    name = [lab.view, lab.overlay, isHinge(lab), isFar(lab), hasLeftOut, lab.key].join(),
    marked = lab.overlay || lab.view === "mask",
    blank = lab.overlay ? _("tint alone") : _("blank");
  if (lab.toldOf === name) return;
  lab.toldOf = name;
  lab.matrix.setAttribute(
    "aria-label",
    _("{view}: {n} anchors by {w} candidates. Up and down choose the anchor, left and right a candidate.", {
      view: _(VIEWS[lab.view]),
      n: lab.n,
      w: lab.w,
    }),
  );
  const item = (color, text, alpha = 1) => {
    const i = el("i", {});
    i.style.background = rgb(color, alpha);
    return el("span", {}, i, text);
  };
  const look = (kind, text) => el("span", {}, mark(kind), text);
  const positive = [look(PULL, _("positive")), look(PUSH, _("negative"))],
    itself = item(GRAY, _("itself"), 0.75);
  if (lab.view === "score")
    lab.legend.replaceChildren(
      ...(lab.overlay ? positive : [item(GREEN, isFar(lab) ? _("dark: near") : _("dark: similar"))]),
      itself,
    );
  else if (lab.view === "grad")
    lab.legend.replaceChildren(
      look(PULL, _("pulled nearer")),
      look(PUSH, _("pushed away")),
      itself,
      el("span", {}, _("{blank}: not moved", { blank })),
    );
  else if (lab.view === "weight" && isHinge(lab))
    lab.legend.replaceChildren(
      look(PULL, _("positive, pulled")),
      look(PUSH, _("negative, still pushed")),
      itself,
      el("span", {}, _("{blank}: no longer moved", { blank })),
    );
  else
    lab.legend.replaceChildren(
      ...positive,
      itself,
      ...(lab.view === "weight" ? [el("span", {}, _("stronger color: more weight"))] : []),
    );
  if (!lab.M.includes(3)) itself.remove();
  if (hasLeftOut && (lab.view !== "score" || lab.overlay))
    lab.legend.append(item(LEFT_OUT, _("left out: may be false"), 0.9));
  if (lab.M.includes(0))
    lab.legend.append(marked ? item(GRAY, _("not compared"), APART) : el("span", {}, _("blank: not compared")));
  if (lab.overlay && lab.view !== "score" && lab.view !== "mask")
    lab.legend.append(el("span", {}, _("tint: positive (blue), negative (orange)")));
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
    { rowThumbs, columnThumbs } = lab.meta;
  g.imageSmoothingEnabled = false;
  if (i !== null) thumb(lab, g, rowThumbs[i], 0, 0, side);
  if (j !== null) thumb(lab, g, columnThumbs[j], side + 8, 0, side);
}

function atFirst(lab, i, j) {
  const { names, columnNames } = lab.meta;
  const pair =
    j === null
      ? _("Anchor: {anchor}.", { anchor: names[i] })
      : _("Its hardest negative: {negative} · {numbers}.", { negative: columnNames[j], numbers: numbers(lab, i, j) });
  if (isTouched()) return _("{pair} Tap a cell to choose its anchor.", { pair });
  return _("{pair} Point at another pair; click a cell, or use the arrow keys, to choose its anchor.", { pair });
}

function inWords(lab, i, j) {
  const { names, columnNames } = lab.meta;
  if (isAsked(lab) && i === lab.anchor && j !== null)
    return _("Is this the other view? Click the bar, or press Enter.");
  if (i === null || j === null) return i === null ? columnNames[j] : names[i];
  const k = i * lab.w + j,
    what = isLeftOut(lab, k)
      ? _("negative, left out")
      : [_("not compared"), _("positive"), _("negative"), _("itself")][lab.M[k]];
  return `${names[i]} → ${columnNames[j]} · ${what} · ${numbers(lab, i, j)}`;
}

function numbers(lab, i, j) {
  const k = i * lab.w + j,
    m = lab.M[k],
    parts = [`${lab.meta.scoreName} ${lab.S[k].toFixed(4)}`];
  if (lab.out && (m === 1 || m === 2))
    parts.push(
      _("weight {weight}", { weight: lab.out.pair[k].toPrecision(3) }),
      _("gradient {gradient}", { gradient: lab.out.grad[k].toPrecision(3) }),
    );
  return parts.join(" · ");
}
