// Who gets the push: the share of the hardest negatives, and the loss of every anchor.

import { isHinge, ranked, steadyTop } from "./pairs.js";
import { choose, light } from "./drag.js";
import { GRAY, ORANGE, halves, line, rgb, tick, within } from "../shared/canvas.js";
import { number, percent } from "../shared/dom.js";
import { N_, _ } from "../shared/locale.js";

/** @param {LossViewState} lab */
export function listenGradients(lab) {
  const { canvas } = lab.panels.grads;
  canvas.tabIndex = 0;
  canvas.onclick = (e) => {
    const i = anchorAt(lab, e);
    if (i !== undefined) choose(lab, i, true);
  };
  canvas.onpointermove = canvas.onpointerdown = (e) => {
    const i = anchorAt(lab, e);
    light(lab, i === undefined ? null : [i, null]);
  };
  canvas.onpointerleave = lab.matrix.onpointerleave;
  canvas.onkeydown = (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key],
      order = lab.sorted ? lab.sorted.order : [];
    if (!step || !order.length) return;
    e.preventDefault();
    choose(lab, order[Math.min(order.length - 1, Math.max(0, order.indexOf(lab.anchor) + step))], false);
    lab.movedByKey = true;
  };
  canvas.onkeyup = lab.matrix.onkeyup;
}

const ALIKE = 1e-6; // relative: pushes that differ less are equal, but for rounding

/**
 * How the push on the chosen anchor's negatives is shared, hardest first. The hardest is the one that is pushed most;
 * of several that are pushed alike (a triplet counts them) it is the nearest. Kept until the loss is computed again.
 *
 * @param {LossViewState} lab
 * @returns {PushShares} `counted`: negatives that matter, as the mean over anchors counts them
 */
export function shares(lab) {
  const { out, anchor } = lab,
    known = out.shares;
  if (known?.anchor === anchor && known.grad === out.grad) return known;
  const at = anchor * lab.w;
  const negatives = ranked(lab).filter((j) => lab.M[at + j] === 2); // nearest first
  const pushOn = (j) => Math.abs(out.grad[at + j]);
  const push = negatives.map(pushOn).sort((a, b) => b - a);
  const hardest = push[0] > 0 ? negatives.find((j) => pushOn(j) >= push[0] * (1 - ALIKE)) : undefined;
  const total = push.reduce((sum, v) => sum + v, 0);
  let sum = 0;
  const curve = push.map((v) => (sum += v) / (total || 1));
  return (out.shares = { anchor, grad: out.grad, total, hardest, curve, counted: out.effective[anchor] });
}

const GRADIENTS = N_(
  "The matrix shows pull and push for every pair where “Gradient” is chosen above it; click " +
    "a bar to choose its anchor.",
);

/** @type {PanelDraw} */
export function drawGradients(lab, g, width, height) {
  const { total, hardest, curve } = shares(lab),
    [first, second] = halves(width, height);
  within(g, first, (w, h) => drawShares(lab, g, curve, w, h));
  within(g, second, (w, h) => drawLosses(lab, g, w, h));
  lab.sorted.box = second;
  const share = (k) => percent(curve[Math.min(k, curve.length) - 1] ?? 0),
    ofHardest = { hardest: lab.meta.columnNames[hardest], share: share(1), share2: share(5) },
    values = { anchor: lab.meta.names[lab.anchor], advice: _(GRADIENTS), ...ofHardest };
  if (total > 0)
    return _(
      "Of all the push on {anchor}'s negatives, the hardest one ({hardest}) gets {share}, the " +
        "hardest 5 get {share2}, the harder half gets {curve}. {advice}",
      { ...values, curve: share(Math.ceil(curve.length / 2)) },
    );
  return lab.kernel && !isHinge(lab)
    ? _("The push on {anchor}'s negatives is close to zero. {advice}", values)
    : _("No negative of {anchor} is pushed. {advice}", values);
}

/** The share of the push that the k hardest negatives have together, over k. */
function drawShares(lab, g, curve, width, height) {
  const base = height - 18,
    span = base - 20,
    wide = width - 20;
  g.fillStyle = lab.ink;
  g.fillText(_("share of the push on its k hardest negatives"), 10, 12, wide);
  if (curve.at(-1) > 0)
    line(g, [[10, base], ...curve.map((v, k) => [10 + ((k + 1) / curve.length) * wide, base - v * span])], rgb(ORANGE));
  g.fillText("k = 0", 10, height - 5);
  tick(g, String(curve.length), 10 + wide, height - 5, width);
}

/** The loss of every anchor, largest first, as bars that can be chosen. */
function drawLosses(lab, g, width, height) {
  const base = height - 18,
    order = Array.from({ length: lab.n }, (x, i) => i).filter((i) => lab.out.weight[i] > 0);
  order.sort((a, b) => lab.out.loss[b] - lab.out.loss[a]);
  const top = steadyTop(lab, "losses", Math.max(1e-12, ...order.map((i) => lab.out.loss[i]))),
    left = 10,
    wide = (width - 20) / Math.max(1, order.length);
  lab.sorted = { order, left, wide };
  g.fillStyle = lab.ink;
  g.fillText(
    _("loss of {length} anchors, largest first (up to {top})", { length: order.length, top: number(top) }),
    left,
    12,
    width - 20,
  );
  order.forEach((i, k) => {
    const h = Math.max(1, (lab.out.loss[i] / top) * (base - 20));
    g.fillStyle = i === lab.anchor || (lab.hover && lab.hover[0] === i) ? lab.accent : rgb(GRAY, 0.7);
    g.fillRect(left + k * wide, base - h, Math.max(1, wide - 0.5), h);
  });
}

function anchorAt(lab, e) {
  if (!lab.sorted) return undefined;
  const { order, left, wide, box } = lab.sorted;
  return e.offsetY < box.y ? undefined : order[Math.floor((e.offsetX - box.x - left) / wide)];
}
