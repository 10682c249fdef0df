// What is told of the training: a sentence, curves, figures, and the views of a few images.

import { GRAY, line, rgb, sizeCanvas, tick } from "../shared/canvas.js";
import { el, number, percent, say } from "../shared/dom.js";
import { knobText } from "../shared/knob.js";
import { _ } from "../shared/locale.js";

const COLLAPSED = -0.1, // uniformity of rows that lie in one place
  EARLY = 50; // steps before which none has collapsed
const DASHES = [[], [5, 3]]; // of A and B
const GAP = 16;

/**
 * @param {any} part
 */
export function tell(part) {
  const { sides, raw, untrained } = part.state,
    side = sides[part.edited],
    setting = part.settings[part.edited];
  say(part.headline, part.fault || headline(side, untrained));
  say(part.second, reason(side, setting));
  drawFigures(part);
  drawCurves(part, raw, untrained);
  drawViews(part, side);
}

function headline({ step, knn, uniformity }, untrained) {
  const values = { knn: percent(knn), untrained: percent(untrained), step: step.toLocaleString("en") };
  if (step === 0) return _("Untrained, its neighbors name {knn} of the held-out digits.", values);
  if (step > EARLY && uniformity > COLLAPSED)
    return _("It has collapsed: all images are in one place, {knn} right.", values);
  return _("After {step} steps its neighbors name {knn} of the held-out digits, untrained {untrained}.", values);
}

/** Why the points move as they do, at this temperature or margin. */
function reason({ matter, same }, { loss, temperature, stopGradient }) {
  const values = {
    tau: knobText(temperature),
    matter: number(matter),
    same: percent(same),
  };
  if (loss === "nt_xent" && Number.isFinite(same))
    return _(
      "At τ = {tau} each image is pushed by {matter} negatives that matter; " +
        "{same} of the push goes to digits of its own class.",
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
    rows = [
      [_("kNN on held-out digits"), (s) => percent(s.knn)],
      [_("Loss"), (s) => number(s.loss)],
      [_("Alignment"), (s) => number(s.alignment)],
      [_("Uniformity"), (s) => number(s.uniformity)],
      [_("Negatives that matter"), (s) => (Number.isFinite(s.matter) ? number(s.matter) : "–")],
    ],
    head = sides.length > 1 ? [el("tr", {}, el("th", {}), el("th", {}, "A"), el("th", {}, "B"))] : [],
    cell = (s, value) => el("td", {}, s.step || value !== rows[1][1] ? value(s) : "–");
  part.figures.replaceChildren(
    ...head,
    ...rows.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), ...sides.map((s) => cell(s, value)))),
    el(
      "caption",
      {},
      _("Raw pixels {raw}, untrained network {untrained}: a point on a sphere has three numbers, an image 64.", {
        raw: percent(raw),
        untrained: percent(untrained),
      }),
    ),
  );
}

/** kNN over the steps, from 0 to 100 %, beside raw pixels and the untrained network. */
function drawCurves(part, raw, untrained) {
  const [g, width, height] = sizeCanvas(part.curves),
    ink = getComputedStyle(part.curves).color,
    last = Math.max(50, ...part.history.flatMap((course) => course.map(([step]) => step))),
    x = (step) => (step / last) * (width - 4) + 2,
    y = (share) => height - GAP - share * (height - 2 * GAP);
  g.fillStyle = ink;
  for (const [share, text] of [
    [raw, _("raw pixels")],
    [untrained, _("untrained")],
  ]) {
    g.setLineDash([2, 3]);
    line(
      g,
      [
        [0, y(share)],
        [width, y(share)],
      ],
      rgb(GRAY),
      1,
    );
    tick(g, text, width, y(share) - 4, width, "right");
  }
  part.history.forEach((course, k) => {
    g.setLineDash(DASHES[k]);
    line(
      g,
      course.map(([step, knn]) => [x(step), y(knn)]),
      ink,
    );
  });
  g.setLineDash([]);
  tick(g, _("kNN, 0 to 100 %"), 0, 10, width, "left");
  tick(g, _("{steps} steps", { steps: last }), width, height - 2, width, "right");
}

/** Images, each above its two views. */
function drawViews(part, { views }) {
  const side = part.data.side,
    size = side * side,
    count = views.length / size / 2,
    canvas = part.views;
  canvas.width = count * (side + 1);
  canvas.height = 2 * (side + 1);
  const g = canvas.getContext("2d"),
    tile = g.createImageData(side, side);
  for (let v = 0; v < 2 * count; v++) {
    for (let k = 0; k < size; k++)
      tile.data.set([128, 134, 140, 255 * Math.min(1, Math.max(0, views[v * size + k]))], 4 * k);
    g.putImageData(tile, (v >> 1) * (side + 1), (v & 1) * (side + 1));
  }
}
