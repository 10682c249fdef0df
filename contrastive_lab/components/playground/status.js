// What is told of the training: a sentence, curves, figures, and the views of a few images.

import { GRAY, line, rgb, sizeCanvas, theme, tick } from "../shared/canvas.js";
import { el, number, percent, say } from "../shared/dom.js";
import { knobText } from "../shared/knob.js";
import { _ } from "../shared/locale.js";

const COLLAPSED = -0.01, // uniformity of rows that lie in one place
  EARLY = 50, // steps before which none has collapsed
  GAP = 16,
  DASHES = [[], [5, 3]]; // of A and B

/** @param {any} part */
export function tell(part) {
  const side = part.state.sides[part.edited];
  say(part.headline, part.fault || headline(side));
  say(part.second, reason(side));
  drawFigures(part);
  drawCurves(part);
  drawViews(part, side);
}

function headline({ step, knn, uniformity, alignment, untrained }) {
  const distance = number(Math.sqrt(alignment)),
    values = { knn: percent(knn), untrained: percent(untrained), step: step.toLocaleString("en"), distance };
  if (step > EARLY && uniformity > COLLAPSED) return _("It has collapsed: all samples are in one place.");
  if (Number.isNaN(knn))
    return _("After {step} steps two views of a sample are {distance} apart (root mean square).", values);
  if (step === 0) return _("Untrained, kNN is right on {knn} of the held-out samples.", values);
  return _("After {step} steps, kNN is right on {knn} of the held-out samples (untrained: {untrained}).", values);
}

/** Why the points move as they do, at this temperature or margin. */
function reason({ matter, same: [same, chance], setting: { loss, temperature, stopGradient } }) {
  const values = { tau: knobText(temperature), matter: number(matter), same: percent(same), chance: percent(chance) };
  if (loss === "nt_xent" && Number.isFinite(same))
    return _(
      "At τ = {tau} each sample is pushed by {matter} negatives that matter; " +
        "{same} of the push goes to samples of its own class, {chance} by chance.",
      values,
    );
  if (loss === "vicreg") return _("It has no negatives: its variance term keeps the points apart.");
  if (loss === "simsiam")
    return stopGradient
      ? _("It has no negatives: the predictor and the stop-gradient keep the points apart.")
      : _("Without the stop-gradient the points end in two opposite places.");
  if (!Number.isFinite(matter)) return "";
  return loss === "triplet"
    ? _("Only negatives within the margin push; {matter} do, on average.", values)
    : _("{matter} negatives matter, on average.", values);
}

function drawFigures(part) {
  const { sides, raw } = part.state,
    { points, untrained } = sides[part.edited],
    told = (value) => (Number.isFinite(value) ? number(value) : "–"),
    /** @type {[string, (side: any) => string][]} */
    rows = [
      [_("kNN on held-out samples"), (s) => (Number.isNaN(s.knn) ? "–" : percent(s.knn))],
      [_("Loss"), (s) => told(s.loss)],
      [_("Alignment"), (s) => told(s.alignment)],
      [_("Uniformity"), (s) => told(s.uniformity)],
      [_("Negatives that matter"), (s) => told(s.matter)],
    ],
    head = sides.length > 1 ? [el("tr", {}, ...["", "A", "B"].map((text) => el("th", {}, text)))] : [],
    share = points.reduce((sum, v) => sum + v * v, 0) / (points.length / 3),
    values = { raw: percent(raw), untrained: percent(untrained), size: part.data.mean.length, share: percent(share) },
    about = [
      Number.isNaN(raw)
        ? _("These samples have no labels, so there is no kNN accuracy.")
        : _("Raw inputs ({size} numbers): {raw}, untrained network: {untrained}.", values),
      part.settings[part.edited].dimensions > 3 &&
        _("The picture keeps {share} of the squared length of the points.", values),
    ];
  part.figures.replaceChildren(
    el("caption", {}, about.filter(Boolean).join(" ")),
    ...head,
    ...rows.map(([name, value]) =>
      el("tr", {}, el("th", { scope: "row" }, name), ...sides.map((s) => el("td", {}, value(s)))),
    ),
  );
}

/** kNN over the steps, from 0 to 100 %, beside raw inputs and the untrained network. */
function drawCurves({ curves, history, edited, state: { raw, sides } }) {
  const [g, width, height] = sizeCanvas(curves),
    { ink } = theme(curves),
    last = Math.max(EARLY, ...history.map((course) => course.at(-1)?.[0] ?? 0)),
    place = ([step, share]) => [(step / last) * (width - 4) + 2, height - GAP - share * (height - 2 * GAP)],
    draw = (course, dash, color, wide) => {
      g.setLineDash(dash);
      line(g, course.map(place), color, wide);
    };
  g.fillStyle = ink;
  const mark = (share, text, up) => {
    const level = [0, last].map((step) => [step, share]);
    draw(level, [2, 3], rgb(GRAY), 1);
    tick(g, text, width, place([last, share])[1] + up, width, "right");
  };
  mark(raw, _("raw inputs"), -4);
  mark(sides[edited].untrained, _("untrained"), 12);
  history.forEach((course, k) => draw(course, DASHES[k], ink, 2));
  g.setLineDash([]);
  tick(g, _("kNN, 0 to 100 %"), 0, 10, width, "left");
  tick(g, _("{steps} steps", { steps: last }), width, height - 2, width, "right");
}

/** Two views of each of some images, one below the other. */
function drawViews({ views: canvas, data: { shape, mean } }, { views }) {
  const [height, width] = shape,
    size = mean.length,
    count = views.length / size / 2;
  canvas.width = count * (width + 1);
  canvas.height = 2 * (height + 1);
  const g = canvas.getContext("2d"),
    tile = g.createImageData(width, height);
  for (let v = 0; v < 2 * count; v++) {
    for (let k = 0; k < size; k++)
      tile.data.set([128, 134, 140, 255 * Math.min(1, Math.max(0, views[v * size + k] + mean[k]))], 4 * k);
    g.putImageData(tile, (v >> 1) * (width + 1), (v & 1) * (height + 1));
  }
}
