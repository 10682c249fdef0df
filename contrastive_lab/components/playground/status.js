// What is told of the training: a sentence, curves, figures, and the views of a few images.

import { GRAY, line, rgb, sizeCanvas, theme, tick } from "../shared/canvas.js";
import { el, number, percent, say } from "../shared/dom.js";
import { knobText } from "../shared/knob.js";
import { _ } from "../shared/locale.js";

const COLLAPSED = -0.1, // uniformity of rows that lie in one place
  EARLY = 50; // steps before which none has collapsed
const DASHES = [[], [5, 3]]; // of A and B
const GAP = 16;

/** @param {any} part */
export function tell(part) {
  const { sides, untrained } = part.state,
    side = sides[part.edited];
  say(part.headline, part.fault || headline(side, untrained));
  say(part.second, reason(side, part.settings[part.edited]));
  drawFigures(part);
  drawCurves(part);
  drawViews(part, side);
}

function headline({ step, knn, uniformity, alignment }, untrained) {
  const distance = number(Math.sqrt(alignment)),
    values = { knn: percent(knn), untrained: percent(untrained), step: step.toLocaleString("en"), distance };
  if (step > EARLY && uniformity > COLLAPSED) return _("It has collapsed: all images are in one place.");
  if (Number.isNaN(knn))
    return _("After {step} steps two views of an image are {distance} apart (root mean square).", values);
  if (step === 0) return _("Untrained, its neighbors name {knn} of the held-out images.", values);
  return _("After {step} steps its neighbors name {knn} of the held-out images, untrained {untrained}.", values);
}

/** Why the points move as they do, at this temperature or margin. */
function reason({ matter, same }, { loss, temperature, stopGradient }) {
  const values = { tau: knobText(temperature), matter: number(matter), same: percent(same) };
  if (loss === "nt_xent" && Number.isFinite(same))
    return _(
      "At τ = {tau} each image is pushed by {matter} negatives that matter; " +
        "{same} of the push goes to images of its own class.",
      values,
    );
  if (loss === "vicreg") return _("It has no negatives: its variance term keeps the points apart.");
  if (loss === "simsiam")
    return stopGradient
      ? _("It has no negatives: the predictor and the stop-gradient keep the points apart.")
      : _("Without the stop-gradient nothing keeps the points apart.");
  if (loss === "triplet") return _("Only negatives within the margin push; {matter} do, on average.", values);
  return Number.isFinite(matter) ? _("{matter} negatives matter, on average.", values) : "";
}

function drawFigures(part) {
  const { sides, raw, untrained } = part.state,
    told = (value) => (Number.isFinite(value) ? number(value) : "–"),
    /** @type {[string, (side: any) => string][]} */
    rows = [
      [_("kNN on held-out images"), (s) => (Number.isNaN(s.knn) ? "–" : percent(s.knn))],
      [_("Loss"), (s) => told(s.loss)],
      [_("Alignment"), (s) => told(s.alignment)],
      [_("Uniformity"), (s) => told(s.uniformity)],
      [_("Negatives that matter"), (s) => told(s.matter)],
    ],
    head = sides.length > 1 ? [el("tr", {}, ...["", "A", "B"].map((text) => el("th", {}, text)))] : [],
    values = { raw: percent(raw), untrained: percent(untrained), size: part.data.mean.length },
    about = Number.isNaN(raw)
      ? _("These images have no labels, so there is no kNN accuracy.")
      : _("Raw pixels {raw}, untrained network {untrained}: a point has three numbers, an image {size}.", values);
  part.figures.replaceChildren(
    el("caption", {}, about),
    ...head,
    ...rows.map(([name, value]) =>
      el("tr", {}, el("th", { scope: "row" }, name), ...sides.map((s) => el("td", {}, value(s)))),
    ),
  );
}

/** kNN over the steps, from 0 to 100 %, beside raw pixels and the untrained network. */
function drawCurves({ curves, history, state: { raw, untrained } }) {
  const [g, width, height] = sizeCanvas(curves),
    { ink } = theme(curves),
    last = Math.max(EARLY, ...history.map((course) => course.at(-1)?.[0] ?? 0)),
    place = ([step, share]) => [(step / last) * (width - 4) + 2, height - GAP - share * (height - 2 * GAP)],
    draw = (course, dash, color, wide) => {
      g.setLineDash(dash);
      line(g, course.map(place), color, wide);
    };
  g.fillStyle = ink;
  for (const [share, text] of /** @type {[number, string][]} */ ([
    [raw, _("raw pixels")],
    [untrained, _("untrained")],
  ])) {
    draw(
      [0, last].map((step) => [step, share]),
      [2, 3],
      rgb(GRAY),
      1,
    );
    tick(g, text, width, place([0, share])[1] - 4, width, "right");
  }
  history.forEach((course, k) => draw(course, DASHES[k], ink, 2));
  g.setLineDash([]);
  tick(g, _("kNN, 0 to 100 %"), 0, 10, width, "left");
  tick(g, _("{steps} steps", { steps: last }), width, height - 2, width, "right");
}

/** Two views of each of some images, one below the other. */
function drawViews({ views: canvas, data: { side, mean } }, { views }) {
  const size = mean.length,
    count = views.length / size / 2;
  canvas.width = count * (side + 1);
  canvas.height = 2 * (side + 1);
  const g = canvas.getContext("2d"),
    tile = g.createImageData(side, side);
  for (let v = 0; v < 2 * count; v++) {
    for (let k = 0; k < size; k++)
      tile.data.set([128, 134, 140, 255 * Math.min(1, Math.max(0, views[v * size + k] + mean[k]))], 4 * k);
    g.putImageData(tile, (v >> 1) * (side + 1), (v & 1) * (side + 1));
  }
}
