// What is known of the pairs whatever the knob: which loss, what is near, who is ranked where.

import { _ } from "../shared/locale.js";
import { isolated } from "../shared/texts.js";

/** @param {LossViewState} lab */
export function isHinge(lab) {
  return Boolean(lab.kernel) && lab.kernel.family === "hinge";
}

/**
 * Whether the loss is a softmax over positives and negatives, each once.
 *
 * @param {Kernel} kernel
 */
export function isPlainSoftmax(kernel) {
  return kernel.family === "softmax" && kernel.negatives !== "hard" && kernel.positive !== "out";
}

/**
 * Whether a negative is left out by the margin for false negatives.
 *
 * @param {LossViewState} lab
 * @param {number} k place of the cell
 */
export function isLeftOut(lab, k) {
  return lab.M[k] === 2 && lab.out?.kept?.[k] === 0 && lab.out.leftOut[Math.floor(k / lab.w)] > 0;
}

/**
 * Whether the file gives a negative for its query.
 *
 * @param {LossViewState} lab
 * @param {number} k place of the cell
 */
export function isGiven({ cache, meta }, k) {
  cache.given ??= new Set(meta.given);
  return cache.given.has(k);
}

/** Where a negative is from; "" for a batch without given ones. @param {LossViewState} lab @param {number} k */
export function originOf(lab, k) {
  if (lab.M[k] !== 2 || !lab.meta.given?.length) return "";
  return isGiven(lab, k) ? _("given for this query") : _("in the batch");
}

/**
 * Near is small: distances, and similarities that a loss takes with a minus.
 *
 * @param {LossViewState} lab
 */
export function isFar(lab) {
  return lab.meta.scoreName.includes("distance");
}

/**
 * Where an axis ends. It grows while a knob is dragged and never shrinks, so that what becomes shorter is a value that
 * becomes smaller.
 *
 * @param {LossViewState} lab
 * @param {string} name of the axis
 * @param {number} most the largest value that is shown
 */
export function steadyTop(lab, name, most) {
  const key = `${name} ${lab.anchor}`,
    tops = (lab.tops ??= {});
  tops[key] = lab.dragging ? Math.max(tops[key] ?? 0, most) : most;
  return tops[key];
}

/**
 * The chosen anchor's positives; like its ranking, they don't change with the knob.
 *
 * @param {LossViewState} lab
 */
export function positivesOf(lab) {
  const at = lab.anchor * lab.w;
  return ranked(lab).filter((j) => lab.M[at + j] === 1);
}

/**
 * Candidates of the anchor, nearest first; the order doesn't change with the knob.
 *
 * @param {LossViewState} lab
 * @returns {number[]}
 */
export function ranked(lab) {
  if (lab.cache.rankedFor === lab.anchor) return lab.cache.ranked;
  const at = lab.anchor * lab.w,
    rows = [],
    sign = isFar(lab) ? 1 : -1;
  for (let j = 0; j < lab.w; j++) if (lab.M[at + j] === 1 || lab.M[at + j] === 2) rows.push(j);
  rows.sort((a, b) => sign * (lab.S[at + a] - lab.S[at + b]));
  lab.cache.rankedFor = lab.anchor;
  return (lab.cache.ranked = rows);
}

/**
 * Whether anchors and candidates are rows of two towers.
 *
 * @param {LossViewState} lab
 */
export function isAcross(lab) {
  return lab.meta.towers?.length === 2;
}

/**
 * Candidates that belong to an anchor (`i`), or anchors that belong to a candidate (`j`, with no anchor).
 *
 * @param {LossViewState} lab
 * @param {number | null} i
 * @param {number | null} [j]
 * @returns {number[]}
 */
export function partnersOf(lab, i, j = null) {
  const { M, n, w } = lab,
    found = [];
  if (i !== null) {
    for (let c = 0; c < w; c++) if (M[i * w + c] === 1) found.push(c);
  } else if (j !== null) for (let r = 0; r < n; r++) if (M[r * w + j] === 1) found.push(r);
  return found;
}

/**
 * An anchor with what it says, where it says something.
 *
 * @param {LossViewState} lab
 * @param {number} i
 */
export function anchorText({ meta }, i) {
  return withText(meta.names[i], meta.texts?.[i]);
}

/**
 * A candidate likewise.
 *
 * @param {LossViewState} lab
 * @param {number} j
 */
export function candidateText({ meta }, j) {
  return withText(meta.columnNames[j], meta.columnTexts?.[j]);
}

function withText(name, text) {
  return text ? _("{name}: {text}", { name, text: isolated(text) }) : name;
}

/**
 * Where a hinge's margin lies among the anchor's scores: a negative is pushed as long as it is nearer. `from`: what the
 * margin is counted from, for triplets the farthest positive.
 *
 * @param {LossViewState} lab
 */
export function marginOf(lab) {
  const { form, squared, margin } = lab.kernel;
  if (form !== "triplet") return { from: 0, at: squared ? Math.sqrt(margin) : margin };
  const from = Math.max(-Infinity, ...positivesOf(lab).map((j) => lab.S[lab.anchor * lab.w + j]));
  return { from, at: from + margin };
}

/**
 * The chosen anchor's negatives that say what one of its positives says. A candidate without a text says what belongs
 * to it says, such as an image its caption.
 *
 * @param {LossViewState} lab
 * @returns {number[]}
 */
export function sameText(lab) {
  const { M, w, anchor, cache, meta } = lab;
  if (cache.sameTextFor === anchor) return cache.sameText;
  const saidOf = (j) =>
    meta.columnTexts?.length ? [meta.columnTexts[j]] : partnersOf(lab, null, j).map((r) => meta.texts[r]);
  const hasTexts = meta.columnTexts?.length || meta.texts?.length,
    right = new Set(hasTexts ? positivesOf(lab).flatMap(saidOf).filter(isWhole) : []);
  cache.sameTextFor = anchor;
  return (cache.sameText = right.size
    ? ranked(lab).filter((j) => M[anchor * w + j] === 2 && saidOf(j).some((text) => right.has(text)))
    : []);
}

/** Whether a text is all that a row says: a cut one may go on otherwise. */
function isWhole(text) {
  return Boolean(text) && !text.endsWith("…");
}
