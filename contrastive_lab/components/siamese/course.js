// The course of a training: steps at the chosen speed, what is kept for the curves, and what a lesson looks at.

import { drawCurves, drawRing } from "./draw.js";
import { COLLAPSED, advance, begin, places, spreadOf } from "./training.js";
import { remembered } from "../shared/course.js";
import { fromSlider } from "../shared/knob.js";
import { checkLesson } from "../shared/lesson.js";
import { report } from "./save.js";
import { isStill, showRunning } from "../shared/stage.js";

/** @import { Settings } from "./training.js" */

const SPEED = /** @type {any} */ ({ low: 1, high: 500, log: true }), // steps a second
  MOST = 40, // steps in a frame, so that a slow machine keeps drawing
  AT_ONCE = 500, // steps of a run without motion
  EARLIER = 3; // curves of earlier courses that stay in sight

/**
 * Steps a second, from the slider's place.
 *
 * @param {any} part
 */
export const speedOf = (part) => fromSlider(SPEED, Number(part.speedSlider.value));

/** The part's settings as a step takes them. @returns {Settings} */
function settingsOf({ method, predictor, stopGradient, further }) {
  const { rate, predictor_rate: predictorRate, momentum } = further.values;
  return { method, predictor, stopGradient, rate, predictorRate, momentum };
}

/**
 * From the start, with the same seed; the course so far stays as a faint curve beside the new one.
 *
 * @param {any} part
 */
export function restart(part) {
  if (part.history?.length > 1) {
    const { label, history } = part;
    part.earlier = [...part.earlier.filter((one) => one.label !== label), { label, history }].slice(-EARLIER);
  }
  Object.assign(part, { training: begin(part.seed), history: [], due: 0, collapsedAt: 0, label: labelOf(part) });
  look(part);
}

/** What was chosen, in short: the name of a curve. */
function labelOf({ method, predictor, stopGradient, seed }) {
  return JSON.stringify({ method, predictor, stopGradient, seed });
}

/** @param {any} part */
export function step(part) {
  advance(part.training, settingsOf(part));
  look(part);
  const { history, training, spread, resultant } = part;
  part.history = remembered(history, [training.step, spread, resultant, training.loss]);
  if (!part.collapsedAt && spread < COLLAPSED) part.collapsedAt = training.step;
}

function look(part) {
  part.places = places(part.training);
  Object.assign(part, spreadOf(part.places.points));
}

/**
 * One redraw at the next frame, and as many steps as are due where it runs.
 *
 * @param {any} part
 */
export function tick(part) {
  if (part.frame) return;
  part.frame = requestAnimationFrame((now) => {
    part.frame = 0;
    if (!part.root.isConnected) return;
    if (part.running && isStill()) {
      for (let k = 0; k < AT_ONCE; k++) step(part);
      part.running = false;
      showRunning(part.run, false);
    } else if (part.running) {
      part.due += ((now - (part.last ?? now)) / 1000) * speedOf(part);
      part.last = now;
      for (let k = 0; k < MOST && part.due >= 1; k++, part.due--) step(part);
      part.due = Math.min(part.due, 1);
    } else part.last = null;
    drawRing(part);
    drawCurves(part);
    judge(part);
    if (part.running) tick(part);
  });
}

/** The lesson's goals, each reached by its own setting. */
function judge(part) {
  const before = part.lesson.done;
  checkLesson(part.lesson, () => factsOf(part), { switches: part.switches, ring: part.canvas });
  if (part.lesson.done && !before) report(part);
}

/**
 * What a lesson's checks look at: the spread of each setting, and how many steps it has lasted with both.
 *
 * @param {any} part
 */
export function factsOf({ predictor, stopGradient, spread, training, collapsedAt }) {
  return {
    spreadWithoutStopGradient: predictor && !stopGradient ? spread : NaN,
    spreadWithoutPredictor: !predictor && stopGradient ? spread : NaN,
    stepsWithBoth: predictor && stopGradient ? (collapsedAt ? 0 : training.step) : NaN,
  };
}
