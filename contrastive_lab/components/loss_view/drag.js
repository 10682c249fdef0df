// A drag, a choice, a glance: the view is drawn again at the next frame, in the browser alone; the server
// hears of a value when it is let go.

import { isWrong } from "./question.js";
import { putFurther } from "../shared/further_knobs.js";
import { setKnob, symbolOf, toSlider } from "../shared/knob.js";
import { tellChosen } from "../shared/part.js";

/**
 * The knob moves in the browser alone; `report` is what tells the server.
 *
 * @param {LossViewState} lab
 * @param {number} v
 * @param {number} stamp
 */
export function drag(lab, v, stamp) {
  lab.pending ||= stamp;
  Object.assign(lab, { dragging: true, turned: symbolOf(lab.meta.knob) });
  setKnob(lab, v);
  schedule(lab, true);
}

/** The knob moves by something other than its slider. */
function dragTo(lab, v, stamp) {
  lab.slider.value = toSlider(lab.meta.knob, v);
  drag(lab, v, stamp);
}

/**
 * The knob is dragged on a canvas, for which the slider is there too: `valueAt(e)` is the value under the pointer, null
 * where there is none.
 *
 * @param {LossViewState} lab
 * @param {HTMLCanvasElement} canvas
 * @param {(e: PointerEvent) => number | null} valueAt
 */
export function listenDrag(lab, canvas, valueAt) {
  const move = (e) => {
    const { low, high } = lab.meta.knob;
    dragTo(lab, Number(Math.min(high, Math.max(low, valueAt(e))).toPrecision(4)), e.timeStamp);
  };
  canvas.onpointerdown = (e) => {
    if (valueAt(e) === null) return;
    canvas.setPointerCapture(e.pointerId);
    canvas.onpointermove = move;
    move(e);
  };
  canvas.onpointerup = canvas.onpointercancel = () => {
    if (canvas.onpointermove) report(lab);
    canvas.onpointermove = null;
  };
}

/**
 * One of the further knobs moves likewise.
 *
 * @param {LossViewState} lab
 * @param {number} stamp
 * @param {Knob} knob
 */
export function turnFurther(lab, stamp, knob) {
  lab.pending ||= stamp;
  Object.assign(lab, { dragging: true, turned: symbolOf(knob) });
  putFurther(lab.further, lab.kernel);
  schedule(lab, true);
}

/** @param {LossViewState} lab */
export function report(lab) {
  tellOf(lab, {});
  schedule(lab); // without what is lit during a drag; and a goal counts once nothing is dragged
}

/**
 * What is chosen, and what was pressed besides.
 *
 * @param {LossViewState} lab
 * @param {Record<string, any>} pressed
 */
export function tellOf(lab, pressed) {
  const count = Object.keys(pressed).length ? { pressed: (lab.pressed = (lab.pressed ?? 0) + 1) } : {};
  tellChosen(lab, {
    of: lab.meta.name,
    value: lab.meta.knob ? lab.value : null,
    anchor: lab.anchor,
    candidate: lab.candidate ?? null,
    view: lab.view,
    stage: lab.stage,
    order: lab.order,
    masks: Boolean(lab.overlay),
    second: lab.pinned ? lab.second.choice : "",
    second_value: lab.pinned ? lab.second.value : null,
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
