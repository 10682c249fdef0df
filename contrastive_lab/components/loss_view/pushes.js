// Who gets the push under four losses: the share of the hardest negative, with what is dragged.

import { tellOf } from "./drag.js";
import { gliding } from "./motion.js";
import { isFar } from "./pairs.js";
import { el, percent, say } from "../shared/dom.js";
import { evaluate, make } from "../shared/kernels.js";
import { N_, _ } from "../shared/locale.js";

const FIRST = { temperature: 0.1, beta: 1, tau_plus: 0.1, bias: -10 }; // of a knob that the loss on the page lacks
const OWN = { family: "softmax", denominator: "own_positive", aggregate: "out", scale: "none", base: null };
/** @type {Record<string, [string, any]>} */
const LOSSES = {
  info_nce: [N_("InfoNCE"), OWN],
  hard_negative: [N_("Hard negatives"), { ...OWN, negatives: "hard" }],
  decoupled: [N_("Decoupled"), { ...OWN, positive: "out", weighting: "none" }],
  siglip: [N_("SigLIP"), { family: "sigmoid" }],
};

/**
 * What the hardest negative of one anchor (row (w) of scores and mask) gets of the push under the four losses, with
 * the knobs of the loss on the page, or their first values.
 *
 * @param {Float32Array} S
 * @param {Uint8Array} M
 * @param {any} kernel
 * @returns {number[]} shares; 0 without a push
 */
export function hardestShares(S, M, kernel) {
  const knobs = Object.fromEntries(Object.entries(FIRST).map(([name, value]) => [name, kernel?.[name] ?? value])),
    out = make(1, M.length);
  return Object.values(LOSSES).map(([, form]) => {
    const { grad } = evaluate(S, M, 1, M.length, /** @type {any} */ ({ ...form, ...knobs, sign: 1 }), out);
    let push = 0,
      most = 0;
    for (let j = 0; j < M.length; j++)
      if (M[j] === 2) {
        push += Math.abs(grad[j]);
        most = Math.max(most, Math.abs(grad[j]));
      }
    return push > 0 ? most / push : 0;
  });
}

/** @param {LossViewState} lab */
export function buildPushes(lab) {
  lab.pushes = Object.entries(LOSSES).map(([name, [title]]) => {
    const fill = el("i", {}),
      told = el("output", {}),
      onclick = () => tellOf(lab, { loss: name }),
      row = el(
        "button",
        { type: "button", onclick },
        el("span", {}, _(title)),
        el("span", { class: "track" }, fill),
        told,
      );
    return { name, fill, told, row };
  });
  const hint = el("p", { class: "hint" }, _("Share of the hardest negative. Click a loss to choose it."));
  const rows = lab.pushes.map(({ row }) => row);
  lab.pushBox = el("div", { class: "pushes" }, el("h2", {}, _("Same batch, other losses")), ...rows, hint);
  return lab.pushBox;
}

/** @param {LossViewState} lab */
export function drawPushes(lab) {
  lab.pushBox.hidden = isFar(lab);
  if (lab.pushBox.hidden) return;
  const at = lab.anchor * lab.w,
    offered = lab.meta.losses.map(([choice]) => choice),
    found = hardestShares(lab.S.subarray(at, at + lab.w), lab.M.subarray(at, at + lab.w), lab.kernel);
  lab.pushes.forEach(({ name, fill, told, row }, k) => {
    fill.style.width = `${100 * gliding(lab, name, found[k])}%`;
    say(told, found[k] ? percent(found[k]) : "–");
    row.disabled = !lab.meta.stage || !offered.includes(`loss:${name}`);
    row.classList.toggle("is", name === lab.meta.name);
  });
}
