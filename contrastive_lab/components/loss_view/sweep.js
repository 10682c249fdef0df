// A small curve of the chosen anchor along the knob. Its line is the slider: it can be dragged.

import { SIDE, alongKnob, plot } from "./curves.js";
import { listenDrag } from "./drag.js";
import { isHinge } from "./pairs.js";
import { GRAY, sizeCanvas } from "../shared/canvas.js";
import { fromSlider } from "../shared/knob.js";
import { _ } from "../shared/locale.js";

/** @param {LossViewState} lab */
export function drawSweep(lab) {
  const { canvas } = lab.panels.sweep;
  canvas.hidden = !lab.meta.knob || !lab.kernel?.knob;
  if (canvas.hidden) return;
  const [g, width, height] = sizeCanvas(canvas),
    top = Math.max(1, lab.out?.negatives[lab.anchor] ?? 1),
    { points } = alongKnob(lab),
    name = isHinge(lab) ? _("negatives still pushed") : _("negatives that matter");
  plot(
    lab,
    g,
    points,
    [{ name: `${name} ≤ ${top}`, color: GRAY, dash: [], of: (q) => q.effective / top }],
    width,
    height,
  );
}

/** @param {LossViewState} lab */
export function listenSweep(lab) {
  const { canvas } = lab.panels.sweep;
  listenDrag(lab, canvas, (e) => {
    const t = (e.offsetX - SIDE) / (canvas.clientWidth - 2 * SIDE);
    return fromSlider(lab.meta.knob, 1000 * Math.min(1, Math.max(0, t)));
  });
}
