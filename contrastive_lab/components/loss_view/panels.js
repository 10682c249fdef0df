// Panels of the Loss Lab that open on demand, one at a time.

import { PANELS } from "./choices.js";
import { drawCurves } from "./curves.js";
import { drawFormula } from "./formula/panel.js";
import { drawGradients, listenGradients } from "./gradients.js";
import { drawScores, listenMargin } from "./margin.js";
import { drawPushes } from "./pushes.js";
import { drawTwo, openTwo } from "./second_panel.js";
import { sizeCanvas } from "../shared/canvas.js";
import { el, say } from "../shared/dom.js";
import { N_, _ } from "../shared/locale.js";

const PANEL_KEYS = {
  grads: N_(" Left and right walk through the anchors."),
  scores: N_(" Left and right move the margin."),
  two: N_(" Arrow keys choose anchor and candidate."),
};

/**
 * @param {LossViewState} lab
 * @param {string} key
 */
export function openPanel(lab, key) {
  lab.panel = key;
  lab.panelBox.hidden = key === "none";
  lab.body.classList.toggle("open", key !== "none");
  lab.extra = el("canvas", { role: "img", class: key });
  lab.note = el("p", { class: "hint", "aria-live": "off" });
  if (key === "two") openTwo(lab);
  else if (key === "formula")
    lab.panelBox.replaceChildren(lab.note, (lab.worked = el("div", { class: "worked" })), lab.extra);
  else lab.panelBox.replaceChildren(lab.note, lab.extra);
  if (key === "scores") listenMargin(lab);
  if (key === "grads") listenGradients(lab);
}

/**
 * @param {LossViewState} lab
 */
export function drawPanel(lab) {
  if (lab.panel === "none") return;
  if (lab.panel === "formula") {
    drawFormula(lab);
    return;
  }
  const [g, width, height] = sizeCanvas(lab.extra);
  g.fillStyle = lab.ink;
  if (lab.panel === "pushes") drawPushes(lab, g, width, height);
  else if (lab.panel === "scores") drawScores(lab, g, width, height);
  else if (lab.panel === "two") drawTwo(lab, g, width, height);
  else if (!lab.kernel && lab.panel !== "grads")
    say(
      lab.note,
      _(
        "The server computes this loss when you release the slider. This panel needs a loss that the browser " +
          "computes.",
      ),
    );
  else if (lab.panel === "curves") drawCurves(lab, g, width, height);
  else if (lab.out) drawGradients(lab, g, width, height);
  lab.extra.setAttribute(
    "aria-label",
    `${_(PANELS[lab.panel])}. ${lab.note.textContent}${_(PANEL_KEYS[lab.panel] || "")}`,
  );
}
