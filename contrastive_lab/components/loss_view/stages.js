// What stands on the stage: the star, the matrix with its bars, or the curves.

import { STAGES } from "./choices.js";
import { drawBars } from "./bars.js";
import { drawCurves } from "./curves.js";
import { drawFormula } from "./formula/panel.js";
import { drawGradients } from "./gradients.js";
import { drawScores } from "./margin.js";
import { drawMatrix } from "./matrix.js";
import { drawStar } from "./star.js";
import { forgetSize, sizeCanvas, sizeOf } from "../shared/canvas.js";
import { el, press, say } from "../shared/dom.js";
import { N_, _ } from "../shared/locale.js";

const NARROW = 768; // pixels below which the inspector stands under the stage
const TITLES = { curves: N_("Along the slider"), grads: N_("Gradients"), scores: N_("Margin"), formula: N_("Formula") };

/**
 * The panels of the curves, each with a title, words and a canvas.
 *
 * @param {LossViewState} lab
 */
export function buildCurves(lab) {
  for (const [key, title] of Object.entries(TITLES)) {
    /** @type {any} */
    const panel = (lab.panels[key] = {
      title: el("h2", {}, _(title)),
      note: el("p", { class: "hint", "aria-live": "off" }),
      canvas: el("canvas", { role: "img", class: key }),
    });
    panel.root = el("section", { class: `panel of-${key}` }, panel.title, panel.note, panel.canvas);
  }
  lab.worked = el("div", { class: "worked" });
  const { canvas } = lab.panels.formula;
  canvas.before(lab.worked);
  canvas.ariaLabel = _("Loss of a positive and of a negative pair, and their derivatives, over the distance.");
  return el("div", { class: "curveside" }, ...Object.keys(TITLES).map((key) => lab.panels[key].root));
}

/**
 * Show a stage; without pictures there is no star. The bars of a star stand in the inspector.
 *
 * @param {LossViewState} lab
 * @param {string} stage
 */
export function showStage(lab, stage) {
  lab.stage = stage === "star" && !lab.hasStar ? "matrix" : stage in STAGES ? stage : "matrix";
  lab.root.dataset.stage = lab.stage;
  press(lab.stageBar.children, lab.stage);
  press(lab.viewBar.children, lab.stage === "matrix" ? lab.view : "");
}

/**
 * The first knob stands in the toolbar of the page, over the room that it has there; in a lesson, on a phone and in
 * other hosts with the picture.
 *
 * @param {LossViewState} lab
 */
export function placeKnob(lab) {
  const room = document.querySelector(".knob-room"),
    observer = (lab.roomObserver ||= new ResizeObserver(() => placeKnob(lab)));
  if (!room || !lab.root.isConnected) return observer.disconnect();
  observer.observe(room);
  const [at, own] = [room, lab.knobBar.closest(".stage")].map((e) => e.getBoundingClientRect());
  lab.knobBar.style.cssText = `--left: ${at.left - own.left}px; --top: ${at.top - own.top}px; --width: ${at.width}px`;
  lab.knobBar.classList.toggle("aloft", at.width > 0);
}

/** @param {LossViewState} lab */
export function drawStage(lab) {
  const isNarrow = sizeOf(lab.root)[0] < NARROW,
    place = lab.stage === "matrix" && !isNarrow ? lab.picture : lab.barPlace,
    inspector = lab.barPlace.parentNode,
    top = isNarrow ? inspector.parentNode : inspector; // on a phone the answer stands above the picture
  if (lab.head.parentNode !== top) top.prepend(lab.head);
  if (lab.barSide.parentNode !== place) {
    place.append(lab.barSide);
    forgetSize(lab.bars);
  }
  if (lab.stage === "curves") drawAllCurves(lab);
  else if (lab.stage === "star") drawStar(lab);
  else drawMatrix(lab);
  if (lab.stage !== "curves") drawBars(lab);
}

const DRAWN = { curves: drawCurves, grads: drawGradients, scores: drawScores };

function drawAllCurves(lab) {
  const words = Object.entries(DRAWN).map(([key, draw]) => {
    const [g, width, height] = sizeCanvas(lab.panels[key].canvas);
    g.fillStyle = lab.ink;
    if (key === "scores" || (key === "grads" ? lab.out : lab.kernel)) return draw(lab, g, width, height);
    return _(
      "The server computes this loss when you release the slider. This panel needs a loss that the browser computes.",
    );
  });
  drawFormula(lab);
  Object.keys(DRAWN).forEach((key, k) => {
    const { canvas, note, title } = lab.panels[key],
      keys = key === "grads" ? _(" Left and right walk through the anchors.") : "";
    say(note, words[k]);
    canvas.setAttribute("aria-label", `${title.textContent}. ${words[k]}${keys}`);
  });
}
