// Bars and figures glide to their new values when the batch or the loss changes, never while a knob is dragged.

import { schedule } from "./drag.js";
import { isStill } from "../shared/stage.js";
import { ease } from "../star/layout.js";

const LASTS = 400; // milliseconds

/**
 * Begin from what is shown.
 *
 * @param {LossViewState} lab
 */
export function beginMotion(lab) {
  lab.motion = lab.shown && !isStill() ? { start: performance.now(), from: lab.shown } : null;
  lab.shown = {};
}

/**
 * A value on its way from the one that was shown by this name.
 *
 * @param {LossViewState} lab
 * @param {string} name
 * @param {number} value
 */
export function gliding(lab, name, value) {
  if (lab.dragging) lab.motion = null;
  const before = lab.motion?.from[name],
    part = lab.motion ? (performance.now() - lab.motion.start) / LASTS : 1,
    now = part < 1 && Number.isFinite(before) ? before + (value - before) * ease(part) : value;
  lab.shown[name] = now;
  if (part < 1) schedule(lab);
  return now;
}
