// The bars of the chosen anchor: its nearest candidates.

import { shares } from "./gradients.js";
import { gliding } from "./motion.js";
import { candidateText, isFar, isGiven, isHinge, isLeftOut, marginOf, ranked, steadyTop } from "./pairs.js";
import { isAsked } from "./question.js";
import { LEFT_OUT } from "./shades.js";
import { thumb } from "./thumbnails.js";
import { GRAY, line, rgb, sizeCanvas } from "../shared/canvas.js";
import { number, say } from "../shared/dom.js";
import { PULL, PUSH, bar, pointedBar } from "../shared/push_pull.js";
import { _ } from "../shared/locale.js";
import { isolated } from "../shared/texts.js";

const UNTOLD = { color: GRAY, hollow: false }, // neither a positive nor a negative
  LEFT = { color: LEFT_OUT, hollow: false }; // a negative that the margin leaves out

const BAR = 22, // height of a bar in CSS pixels
  TOLD = 0.58; // of the width that words take where bars are long

/** @param {LossViewState} lab */
export function drawBars(lab) {
  const [g, width, height] = sizeCanvas(lab.bars),
    at = lab.anchor * lab.w,
    hinge = isHinge(lab),
    asked = isAsked(lab),
    rows = ranked(lab);
  const fit = Math.max(4, Math.floor(height / BAR)),
    isPositive = (j) => !asked && lab.M[at + j] === 1;
  const { from, shown, beyond } = rowsOf(rows, fit, lab.barFrom || 0, isPositive);
  Object.assign(lab, { barFrom: from, barRows: shown, barStep: beyond ? fit - 1 : fit });
  lab.turns.hidden = rows.length <= fit;
  lab.sharing.hidden = lab.view !== "grad" && (isHinge(lab) || !lab.out);
  lab.turns.children[0].disabled = from === 0;
  lab.turns.children[1].disabled = from + fit >= rows.length;
  lab.barFit = Math.max(1, height / BAR);
  const gradients = lab.view === "grad" && Boolean(lab.out),
    scores = !gradients && (hinge || !lab.out),
    margin = scores && hinge ? marginOf(lab).at : NaN;
  const which = from
    ? _("its nearest {first} to {last}", { first: from + 1, last: from + shown.length })
    : beyond
      ? _("the nearest {count} and the positive at rank {rank}", { count: shown.length - 1, rank: beyond })
      : _("the nearest {count}", { count: shown.length });
  const isShare = !asked && !scores && lab.share, // which would tell the positive from the others
    values = gradients || isShare ? lab.out.grad : scores ? lab.S : lab.out.pair,
    total = isShare ? shares(lab).total : 1,
    isShown = (j) => !isShare || lab.M[at + j] === 2,
    most = Math.max(1e-12, ...(from ? rows : shown).filter(isShown).map((j) => Math.abs(values[at + j]))),
    top = isShare
      ? total || 1
      : scores
        ? margin > most
          ? Math.min(margin, 1.25 * most)
          : most
        : lab.view !== "grad" && lab.kernel && most <= 1
          ? 1
          : steadyTop(lab, lab.view, most),
    left = lab.sprite ? BAR + 6 : 4,
    unit = ((width - left) * (1 - TOLD)) / top;
  const edge = margin > top ? width - 4 : margin >= 0 ? left + margin * unit : NaN; // where the line stands
  g.textBaseline = "middle";
  shown.forEach((j, k) => {
    const y = k * BAR,
      positive = lab.M[at + j] === 1,
      v = values[at + j],
      isOut = !asked && isLeftOut(lab, at + j),
      length = gliding(lab, `bar ${k}`, isOut ? BAR - 6 : isShown(j) ? Math.max(1, Math.abs(v) * unit) : 0),
      pulled = v < 0 !== isFar(lab),
      look = asked ? UNTOLD : isOut ? LEFT : (gradients ? pulled : positive) ? PULL : PUSH;
    thumb(lab, g, lab.meta.columnThumbs[j], 0, y + 1, BAR - 2);
    const pale = hinge && scores && lab.out && lab.out.pair[at + j] === 0;
    if (length) {
      if (gradients && !isOut) pointedBar(g, look, [left, y + 3, length, BAR - 6]);
      else bar(g, look, [left, y + 3, length, BAR - 6], pale ? 0.35 : 1);
    }
    g.fillStyle = lab.ink;
    const size = gradients || isShare ? Math.abs(v) : v,
      part =
        isShare && isShown(j) ? share(Math.abs(v) / (total || 1)) : size > 0 && size < 1e-4 ? "< 0.0001" : number(size),
      told = isOut ? _("left out") : part,
      how =
        (!gradients && (isShown(j) || asked)) || v === 0
          ? told
          : pulled
            ? _("pull {share}", { share: told })
            : _("push {share}", { share: told }),
      dot = isGiven(lab, at + j) ? "● " : "",
      words = asked
        ? told
        : `${positive ? "+ " : ""}${how}  ${dot}${isolated(lab.meta.columnTexts?.[j] ?? "") || candidateText(lab, j)}`,
      [x, wide] = placeOf(left + length + 5, edge, width);
    g.fillText(fitted(g, words, wide), x, y + BAR / 2, wide);
    if (lab.hover && lab.hover[1] === j) {
      g.strokeStyle = lab.accent;
      g.lineWidth = 2;
      g.strokeRect(1, y, width - 2, BAR);
    }
  });
  if (beyond) line(g, [[0, (fit - 1) * BAR], [width, (fit - 1) * BAR]], rgb(GRAY, 0.5), 1); // prettier-ignore
  if (edge >= 0) line(g, [[edge, 0], [edge, shown.length * BAR]], lab.accent, 2); // prettier-ignore
  const anchor = lab.meta.names[lab.anchor] ?? "";
  say(lab.barTitle, _("Anchor {anchor}: {which} of {count}", { anchor, which, count: rows.length }));
  const marks = lab.meta.given?.length && !asked ? [_("●: given for this query")] : [];
  say(lab.barLegend, [legend(lab, scores), ...marks].join(" · "));
  if (lab.stale || !lab.bars.hasAttribute("aria-label"))
    lab.bars.setAttribute(
      "aria-label",
      _("{title}. Up, down, page up and page down walk through them.", { title: lab.barTitle.textContent }),
    );
}

/**
 * The candidates that have a bar: some that follow each other, and last the nearest positive where it is not among the
 * nearest.
 *
 * @param {number[]} rows candidates, nearest first
 * @param {number} fit how many bars there is room for
 * @param {number} wanted rank of the first
 * @param {(j: number) => boolean} isPositive
 * @returns {{ from: number, shown: number[], beyond: number }} beyond: the rank of a positive that was added, or 0
 */
export function rowsOf(rows, fit, wanted, isPositive) {
  const from = Math.max(0, Math.min(wanted, rows.length - fit)),
    shown = rows.slice(from, from + fit),
    place = from ? -1 : rows.findIndex(isPositive);
  if (place < fit) return { from, shown, beyond: 0 };
  shown[fit - 1] = rows[place];
  return { from, shown, beyond: place + 1 };
}

const CLEAR = 5; // pixels between the line and words

/**
 * Where a bar's words begin, and how wide they may be: beside the line of the margin, never across it.
 *
 * @param {number} start behind the bar
 * @param {number} edge of the line; NaN: there is none
 * @param {number} width of the canvas
 * @returns {[number, number]}
 */
export function placeOf(start, edge, width) {
  const end = width - 2;
  if (!(edge >= 0)) return [start, end - start];
  if (edge > TOLD * width && start < edge) return [start, edge - CLEAR - start];
  const x = Math.max(start, edge + CLEAR);
  return [x, end - x];
}

const SQUEEZED = 1.25; // times the room that words may be squeezed into

/** Words as long as fit, with a mark where they are cut. */
function fitted(g, words, wide) {
  const most = Math.max(0, wide) * SQUEEZED,
    long = g.measureText(words).width;
  return long <= most ? words : `${words.slice(0, Math.max(1, Math.floor((words.length * most) / long) - 1))}…`;
}

/** What the bars show, and what their marks mean. */
function legend(lab, scores) {
  if (isAsked(lab)) return _("weight");
  if (!scores && lab.share) return _("share of the push on negatives, 0 to 100 %; +: positive");
  if (lab.view === "grad" && lab.out) return _("gradient; +: positive");
  if (!scores && lab.kernel?.family === "sigmoid") return _("sigmoid error of each pair; +: positive");
  if (!scores) return _("share of the softmax over positives and negatives; +: positive");
  if (!isHinge(lab)) return lab.meta.scoreName;
  const place = lab.kernel.form === "triplet" ? _("farthest positive + ε") : "ε";
  return _("{scoreName}; line: {place}; pale: no longer moved", { scoreName: lab.meta.scoreName, place });
}

function share(x) {
  return x > 0 && x < 0.0005 ? "< 0.1 %" : x < 1 && x >= 0.9995 ? "> 99.9 %" : `${(100 * x).toFixed(1)} %`;
}
