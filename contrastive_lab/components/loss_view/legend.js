// The matrix in words: its legend, its label, and the pair that is pointed at.

import { VIEWS } from "./choices.js";
import { shares } from "./gradients.js";
import { anchorText, candidateText, isAcross, isFar, isHinge, isLeftOut, originOf, partnersOf } from "./pairs.js";
import { isAsked } from "./question.js";
import { APART, LEFT_OUT } from "./shades.js";
import { thumb } from "./thumbnails.js";
import { GRAY, GREEN, sizeCanvas } from "../shared/canvas.js";
import { el, isTouched, number, say } from "../shared/dom.js";
import { PULL, PUSH, mark, swatch } from "../shared/push_pull.js";
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
  lab.matrix.setAttribute("aria-label", nameOf(lab));
  const look = (kind, text) => el("span", {}, mark(kind), text);
  const both = (positive, negative) => [look(PULL, positive), look(PUSH, negative)],
    masks = both(_("positive"), _("negative")),
    words = (text) => [el("span", {}, text)],
    itself = swatch(GRAY, _("itself"), 0.75),
    isOfHinge = lab.view === "weight" && isHinge(lab);
  const [kinds, more] =
    lab.view === "score"
      ? [lab.overlay ? masks : [swatch(GREEN, isFar(lab) ? _("dark: near") : _("dark: similar"))], []]
      : lab.view === "grad"
        ? [both(_("pulled nearer"), _("pushed away")), words(_("{blank}: not moved", { blank }))]
        : isOfHinge
          ? [both(_("positive, pulled"), _("negative, still pushed")), words(_("{blank}: no longer moved", { blank }))]
          : [masks, lab.view === "weight" ? words(_("stronger color: more weight")) : []];
  lab.legend.replaceChildren(...kinds, itself, ...more);
  if (!lab.M.includes(3)) itself.remove();
  if (hasLeftOut && (lab.view !== "score" || lab.overlay))
    lab.legend.append(swatch(LEFT_OUT, _("left out: may be false"), 0.9));
  if (lab.M.includes(0))
    lab.legend.append(marked ? swatch(GRAY, _("not compared"), APART) : el("span", {}, _("blank: not compared")));
  if (lab.overlay && lab.view !== "score" && lab.view !== "mask")
    lab.legend.append(el("span", {}, _("tint: positive (blue), negative (orange)")));
  if (lab.meta.given?.length) lab.legend.append(el("span", {}, _("dot: given for this query")));
  if (isAcross(lab)) {
    const [rows, columns] = lab.meta.towers;
    lab.legend.append(el("span", {}, _("rows: {rows}, columns: {columns}", { rows, columns })));
  }
}

/** What the matrix is, and its keys. */
function nameOf(lab) {
  const values = { view: _(VIEWS[lab.view]), n: lab.n, w: lab.w };
  if (!isAcross(lab))
    return _(
      "{view}: {n} anchors by {w} candidates. Up and down choose the anchor, left and right a candidate.",
      values,
    );
  const [rows, columns] = lab.meta.towers;
  return _(
    "{view}: {n} anchors of {rows} by {w} candidates of {columns}. Up and down choose the anchor, left and right a " +
      "candidate.",
    { ...values, rows, columns },
  );
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
  thumb(
    lab,
    g,
    i === null ? pictureOfPartner(lab, null, j) : (own(rowThumbs[i]) ?? pictureOfPartner(lab, i)),
    0,
    0,
    side,
  );
  if (j !== null) thumb(lab, g, own(columnThumbs[j]) ?? pictureOfPartner(lab, null, j), side + 8, 0, side);
}

/** The number of a picture; undefined for none. */
const own = (index) => (index >= 0 ? index : undefined);

/** Of two towers, the picture of what belongs to an anchor, or to a candidate, such as a caption's image. */
function pictureOfPartner(lab, i, j = null) {
  const { rowThumbs, columnThumbs } = lab.meta;
  return isAcross(lab) ? (i === null ? rowThumbs : columnThumbs)[partnersOf(lab, i, j)[0]] : undefined;
}

function atFirst(lab, i, j) {
  const told = j === null ? "" : [numbers(lab, i, j), ...partner(lab, null, j)].join(" · ");
  const pair =
    j === null
      ? _("Anchor: {anchor}.", { anchor: anchorText(lab, i) })
      : _("Its hardest negative: {negative} · {numbers}.", { negative: candidateText(lab, j), numbers: told });
  if (isTouched()) return _("{pair} Tap a pair to choose its anchor.", { pair });
  return _("{pair} Point at another pair; click it, or use the arrow keys, to choose its anchor.", { pair });
}

function inWords(lab, i, j) {
  if (isAsked(lab) && i === lab.anchor && j !== null)
    return _("Is this the other view? Click the bar, or press Enter.");
  if (i === null || j === null)
    return [i === null ? candidateText(lab, j) : anchorText(lab, i), ...partner(lab, i, j)].join(" · ");
  const k = i * lab.w + j,
    what = isLeftOut(lab, k)
      ? _("negative, left out")
      : [_("not compared"), _("positive"), _("negative"), _("itself")][lab.M[k]];
  const told = lab.M[k] === 1 ? [] : partner(lab, null, j);
  return [`${anchorText(lab, i)} → ${candidateText(lab, j)}`, what, numbers(lab, i, j), ...told].join(" · ");
}

/** Of two towers, what belongs to an anchor, or to a candidate. */
function partner(lab, i, j) {
  if (!isAcross(lab)) return [];
  const found = partnersOf(lab, i, j),
    name = found.length ? (i === null ? anchorText : candidateText)(lab, found[0]) : "";
  if (!found.length) return [];
  if (found.length === 1) return [_("belongs to {name}", { name })];
  return [_("belongs to {name} and {count} more", { name, count: found.length - 1 })];
}

function numbers(lab, i, j) {
  const k = i * lab.w + j,
    m = lab.M[k],
    parts = [originOf(lab, k), `${lab.meta.scoreName} ${number(lab.S[k])}`].filter(Boolean);
  if (lab.out && (m === 1 || m === 2))
    parts.push(
      _("weight {weight}", { weight: lab.out.pair[k].toPrecision(3) }),
      _("gradient {gradient}", { gradient: lab.out.grad[k].toPrecision(3) }),
    );
  return parts.join(" · ");
}
