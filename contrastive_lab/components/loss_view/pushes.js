// What each loss pushes: the chosen anchor's pairs under four losses side by side, with what is dragged.

import { isFar, ranked } from "./pairs.js";
import { thumb } from "./thumbnails.js";
import { number, percent, say } from "../shared/dom.js";
import { evaluate, make } from "../shared/kernels.js";
import { knobText } from "../shared/knob.js";
import { PULL, PUSH, pointedBar } from "../shared/push_pull.js";
import { N_, _ } from "../shared/locale.js";

const ROW = 22, // height of a candidate in CSS pixels
  HEAD = 44,
  TOP = 40,
  FIRST = { temperature: 0.1, beta: 1, tau_plus: 0.1, bias: -10 }; // of a knob that the loss on the page lacks
const OWN = { family: "softmax", denominator: "own_positive", aggregate: "out", scale: "none", base: null };
/** @type {Record<string, [string, any]>} */
const LOSSES = {
  info_nce: [N_("InfoNCE"), OWN],
  hard_negative: [N_("Hard negatives"), { ...OWN, negatives: "hard" }],
  decoupled: [N_("Decoupled"), { ...OWN, positive: "out", weighting: "none" }],
  siglip: [N_("SigLIP"), { family: "sigmoid" }],
};

/**
 * The four losses on one anchor (row (w) of scores and mask) with the knobs of the loss on the page, or their first
 * values: each with its loss and its gradients (w).
 *
 * @param {Float32Array} S
 * @param {Uint8Array} M
 * @param {any} kernel
 */
export function pushesOf(S, M, kernel) {
  const knobs = Object.fromEntries(Object.entries(FIRST).map(([name, value]) => [name, kernel?.[name] ?? value]));
  return Object.values(LOSSES).map(([title, form]) => {
    const out = evaluate(S, M, 1, M.length, /** @type {any} */ ({ ...form, ...knobs, sign: 1 }), make(1, M.length));
    let push = 0,
      most = 0;
    for (let j = 0; j < M.length; j++) {
      most = Math.max(most, Math.abs(out.grad[j]));
      if (M[j] === 2) push += Math.abs(out.grad[j]);
    }
    return { title, loss: out.loss[0], isDefined: out.weight[0] > 0, grad: out.grad, push, most, knobs };
  });
}

/**
 * @param {LossViewState} lab
 * @param {CanvasRenderingContext2D} g
 * @param {number} width
 * @param {number} height
 */
export function drawPushes(lab, g, width, height) {
  if (isFar(lab)) {
    say(lab.note, _("These losses compare similarities. The loss that is chosen compares distances."));
    return;
  }
  const at = lab.anchor * lab.w,
    M = lab.M.subarray(at, at + lab.w),
    found = pushesOf(lab.S.subarray(at, at + lab.w), M, lab.kernel),
    across = width < 560 ? 2 : 4,
    down = 4 / across,
    part = { width: width / across, height: height / down };
  found.forEach((one, k) => {
    g.save();
    g.translate((k % across) * part.width, Math.floor(k / across) * part.height);
    drawOne(lab, g, one, M, part);
    g.restore();
  });
  say(lab.note, inWords(lab, found, M));
}

function drawOne(lab, g, one, M, { width, height }) {
  const shown = ranked(lab).slice(0, Math.max(1, Math.floor((height - HEAD) / ROW))),
    left = lab.sprite ? ROW + 4 : 4,
    unit = (width - left - 66) / (one.most || 1);
  g.textBaseline = "alphabetic";
  g.fillStyle = lab.ink;
  g.font = g.font.replace(/^/, "600 ");
  g.fillText(_(one.title), 4, 16, width - 10);
  g.font = g.font.replace(/^(600|bold) /, "");
  g.fillText(one.isDefined ? _("loss {loss}", { loss: number(one.loss) }) : _("undefined"), 4, 34, width - 10);
  g.textBaseline = "middle";
  shown.forEach((j, k) => {
    const y = TOP + k * ROW,
      v = one.grad[j],
      length = Math.max(1, Math.abs(v) * unit),
      told = M[j] === 1 ? "+" : one.push > 0 ? percent(Math.abs(v) / one.push) : "–";
    thumb(lab, g, lab.meta.columnThumbs[j], 0, y + 1, ROW - 2);
    if (v) pointedBar(g, v < 0 ? PULL : PUSH, [left, y + 3, length, ROW - 6]);
    g.fillStyle = lab.ink;
    g.fillText(told, left + (v ? length : 0) + 5, y + ROW / 2, 62);
  });
}

function inWords(lab, found, M) {
  const name = (j) => lab.meta.columnNames[j],
    { temperature, beta, tau_plus, bias } = found[0].knobs;
  const parts = found.map(({ title, grad, push }) => {
    const negatives = ranked(lab).filter((j) => M[j] === 2),
      hardest = negatives.reduce((best, j) => (grad[j] > (grad[best] ?? 0) ? j : best), -1);
    return hardest < 0
      ? _("{title}: no push", { title: _(title) })
      : _("{title}: {share} on {name}", { title: _(title), share: percent(grad[hardest] / push), name: name(hardest) });
  });
  return _(
    "Anchor {anchor} under four losses at τ = {temperature}, β = {beta}, τ⁺ = {tau_plus}, b = {bias}. " +
      "Percentages are shares of the push on negatives; +: positive. Largest share: {parts}.",
    {
      anchor: lab.meta.names[lab.anchor],
      temperature: knobText(temperature),
      beta: knobText(beta),
      tau_plus: knobText(tau_plus),
      bias: knobText(bias),
      parts: parts.join("; "),
    },
  );
}
