// The margin on a histogram of the scores, as a line that can be dragged.

import { listenDrag } from "./drag.js";
import { isHinge, marginOf } from "./pairs.js";
import { line, tick } from "../shared/canvas.js";
import { PULL, PUSH, area } from "../shared/push_pull.js";
import { _ } from "../shared/locale.js";

const BINS = 60;

/** Histograms of positives' and negatives' scores: of all anchors, or of one. */
function histogram(lab, one) {
  const name = one ? `bins${lab.anchor}` : "bins";
  if (lab.cache.binsName === name) return lab.cache.bins;
  const [low, high] = lab.range,
    scale = BINS / (high - low || 1);
  const bins = { positive: new Float64Array(BINS), negative: new Float64Array(BINS), nP: 0, nN: 0 };
  for (let k = one ? lab.anchor * lab.w : 0, end = one ? k + lab.w : lab.S.length; k < end; k++) {
    const b = Math.min(BINS - 1, Math.floor((lab.S[k] - low) * scale));
    if (lab.M[k] === 1) {
      bins.positive[b]++;
      bins.nP++;
    } else if (lab.M[k] === 2) {
      bins.negative[b]++;
      bins.nN++;
    }
  }
  lab.cache.binsName = name;
  return (lab.cache.bins = bins);
}

/** @type {PanelDraw} */
export function drawScores(lab, g, width, height) {
  const triplet = isHinge(lab) && lab.kernel.form === "triplet",
    bins = histogram(lab, triplet);
  const [low, high] = lab.range,
    base = height - 18,
    wide = (width - 20) / BINS;
  const x = (v) => 10 + ((v - low) / (high - low || 1)) * (width - 20);
  for (const { counts, look } of [
    { counts: bins.negative, look: PUSH },
    { counts: bins.positive, look: PULL },
  ]) {
    const top = Math.max(1, ...counts);
    const steps = Array.from(counts, (c, b) =>
      [0, 1].map((k) => [10 + (b + k) * wide, base - (c / top) * (base - 10)]),
    );
    area(g, look, [[10, base], ...steps.flat(), [width - 10, base]]);
  }
  g.fillStyle = lab.ink;
  for (const t of [0, 0.25, 0.5, 0.75, 1])
    tick(g, (low + t * (high - low)).toFixed(2), 10 + t * (width - 20), height - 5, width);
  lab.marginAt = null;
  if (isHinge(lab) && bins.nP + bins.nN > 0) {
    ({ from: lab.marginFrom, at: lab.marginAt } = marginOf(lab));
    const at = Math.min(width - 8, x(lab.marginAt)),
      ends = [6, base].map((y) => [at, y]);
    line(g, ends, lab.accent, 3);
    tick(
      g,
      triplet ? _("farthest positive + ε") : "ε",
      at + (at > width / 2 ? -8 : 8),
      14,
      width,
      at > width / 2 ? "right" : "left",
    );
  }
  lab.panels.scores.canvas.classList.toggle("fixed", lab.marginAt === null);
  return marginWords(lab, triplet, bins);
}

function marginWords(lab, triplet, bins) {
  const { nP, nN } = bins,
    pairs = _("{scoreName}: {nP} positive pairs (blue, filled) and {nN} negative pairs (orange, hollow)", {
      scoreName: lab.meta.scoreName,
      nP,
      nN,
    });
  if (!isHinge(lab) || !lab.out) return _("{pairs}, each with a scale of its own.", { pairs });
  const sum = (a) => a.reduce((s, v) => s + v, 0),
    active = sum(lab.out.active);
  if (!triplet)
    return _(
      "{pairs}. Drag the line. {active} negatives are inside the margin and are pushed. The {active2} beyond it " +
        "are not moved: they are blank in the matrix and pale among the bars. Positives are pulled at every distance.",
      { pairs, active, active2: bins.nN - active },
    );
  const hard = sum(lab.out.hard),
    beyond = lab.marginAt > lab.range[1] ? _(" (beyond the right edge)") : "";
  return _(
    "{pairs} of the chosen anchor; the line is its farthest positive plus the margin{beyond}. " +
      "Negatives left of it are still pushed. In the batch {active} triplets are active: {hard} " +
      "hard (the negative is nearer than the positive), {hard2} semi-hard (farther, but by less " +
      "than the margin).",
    { pairs, beyond, active, hard, hard2: active - hard },
  );
}

/** @param {LossViewState} lab */
export function listenMargin(lab) {
  const { canvas } = lab.panels.scores;
  listenDrag(lab, canvas, (e) => {
    if (lab.marginAt === null) return null;
    const [low, high] = lab.range,
      d = low + ((e.offsetX - 10) / (canvas.clientWidth - 20)) * (high - low);
    return lab.kernel.squared && lab.kernel.form === "pair" ? Math.max(0, d) * d : d - lab.marginFrom;
  });
}
