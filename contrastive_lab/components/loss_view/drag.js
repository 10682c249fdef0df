// A drag, a choice, a glance: the view is drawn again at the next frame, in the browser alone; the server
// hears of a value when it is let go.

import { isWrong } from "./question.js";
import { putFurther } from "../shared/further_knobs.js";
import { fromSlider, setKnob, toSlider } from "../shared/knob.js";
import { doneOf } from "../shared/lesson.js";

/**
 * The slider: what is dragged is computed at each frame, and told once.
 *
 * @param {LossViewState} lab
 */
export function listenToKnob(lab) {
  const { slider } = lab;
  slider.oninput = (e) => drag(lab, fromSlider(lab.meta.knob, slider.value), e.timeStamp);
  // A held arrow key changes the slider again and again: it counts as one drag until it is let go.
  slider.onkeydown = (e) => {
    if (e.key !== "Tab") lab.dragging = lab.byKey = true;
  };
  slider.onkeyup = slider.onblur = () => {
    if (lab.byKey) {
      lab.byKey = false;
      report(lab);
    }
  };
  slider.onchange = () => {
    if (!lab.byKey) report(lab);
  };
}

/**
 * The knob moves in the browser alone; `report` is what tells the server.
 *
 * @param {LossViewState} lab
 * @param {number} v
 * @param {number} stamp
 */
export function drag(lab, v, stamp) {
  lab.pending ||= stamp;
  lab.dragging = true;
  setKnob(lab, v);
  schedule(lab, true);
}

/**
 * The knob moves by something other than its slider.
 *
 * @param {LossViewState} lab
 * @param {number} v
 * @param {number} stamp
 */
export function dragTo(lab, v, stamp) {
  lab.slider.value = toSlider(lab.meta.knob, v);
  drag(lab, v, stamp);
}

/**
 * One of the further knobs moves likewise.
 *
 * @param {LossViewState} lab
 * @param {number} stamp
 */
export function turnFurther(lab, stamp) {
  lab.pending ||= stamp;
  lab.dragging = true;
  putFurther(lab.further, lab.kernel);
  schedule(lab, true);
}

/**
 * @param {LossViewState} lab
 */
export function report(lab) {
  tellOf(lab, {});
  if (lab.lesson.lesson && !lab.lesson.done) schedule(lab); // a goal counts once nothing is dragged
}

/**
 * What is chosen, and what was pressed besides.
 *
 * @param {LossViewState} lab
 * @param {Record<string, any>} pressed
 */
export function tellOf(lab, pressed) {
  lab.dragging = false;
  const count = Object.keys(pressed).length ? { pressed: (lab.pressed = (lab.pressed ?? 0) + 1) } : {};
  lab.send("chosen", {
    of: lab.meta.name,
    value: lab.meta.knob ? lab.value : null,
    more: lab.further.values,
    anchor: lab.anchor,
    view: lab.view,
    stage: lab.stage,
    order: lab.order,
    masks: Boolean(lab.overlay),
    second: lab.pinned ? lab.second.choice : "",
    second_value: lab.pinned ? lab.second.value : null,
    report: (lab.reports = (lab.reports ?? 0) + 1),
    done: doneOf(lab.lesson),
    ...pressed,
    ...count, // the same may be pressed twice
  });
}

/**
 * @param {LossViewState} lab
 * @param {number} row
 * @param {boolean} tell
 */
export function choose(lab, row, tell) {
  if (row === lab.anchor || isWrong(lab, row)) return;
  Object.assign(lab, { anchor: row, barFrom: 0 });
  if (tell) report(lab);
  schedule(lab);
}

/**
 * @param {LossViewState} lab
 * @param {[number | null, number | null] | null} cell
 */
export function light(lab, cell) {
  lab.hover = cell;
  schedule(lab);
}

/**
 * One redraw at the next frame; `stale`: the loss or the matrix has to be computed again.
 *
 * @param {LossViewState} lab
 * @param {boolean} [stale]
 */
export function schedule(lab, stale) {
  lab.stale ||= Boolean(stale);
  if (lab.frame) return;
  lab.frame = requestAnimationFrame(() => {
    lab.frame = 0;
    lab.redraw();
  });
}
