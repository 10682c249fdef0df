// Pointer and keys on the circle.

import { place } from "./draw.js";
import { tick } from "./frame.js";
import { advance, restart } from "./points.js";
import { report } from "./save.js";
import { isTouched } from "../shared/dom.js";

const REACH = 28, // pixels around a point: one that moves has to be caught
  REACH_OF_FINGER = 40;

function angleOf(ring, e) {
  const { x, y } = place(ring);
  return Math.atan2(y - e.offsetY, e.offsetX - x);
}

/**
 * The point nearest to (x, y), within reach; −1 for none.
 *
 * @param {{ spots: number[][] }} ring
 * @param {number} x
 * @param {number} y
 * @param {number} [reach]
 */
export function pointAt({ spots }, x, y, reach = isTouched() ? REACH_OF_FINGER : REACH) {
  let best = -1,
    near = reach * reach;
  spots.forEach(([a, b], i) => {
    const d = (a - x) ** 2 + (b - y) ** 2;
    if (d < near) {
      near = d;
      best = i;
    }
  });
  return best;
}

/**
 * A point follows the pointer; meanwhile all others wait (frame.js).
 *
 * @param {CircleState} ring
 */
export function listen(ring) {
  const { canvas } = ring;
  canvas.onpointerdown = (e) => {
    ring.held = pointAt(ring, e.offsetX, e.offsetY);
    if (ring.held >= 0) canvas.setPointerCapture(e.pointerId);
    tick(ring);
  };
  // A finger beside the points scrolls the page.
  canvas.ontouchstart = (e) => {
    const { left, top } = canvas.getBoundingClientRect(),
      { clientX, clientY } = e.touches[0];
    if (pointAt(ring, clientX - left, clientY - top) >= 0) e.preventDefault();
  };
  canvas.onpointermove = (e) => {
    if (ring.held < 0) {
      canvas.style.cursor = pointAt(ring, e.offsetX, e.offsetY) < 0 ? "" : "grab";
      return;
    }
    ring.angles[ring.held] = angleOf(ring, e);
    ring.moved = true;
    ring.trail = [];
    tick(ring);
  };
  canvas.onpointerup = canvas.onpointercancel = () => {
    const isHeld = ring.held >= 0;
    ring.held = -1;
    tick(ring);
    if (isHeld && !ring.running) report(ring);
  };
  canvas.onkeyup = canvas.onblur = () => {
    if (ring.byKey && !ring.running) report(ring);
    ring.byKey = false;
  };
  canvas.onkeydown = (e) => keys(ring, e);
}

function keys(ring, e) {
  if (e.key === "n" || e.key === "p") ring.chosen = (ring.chosen + (e.key === "n" ? 1 : -1) + ring.n) % ring.n;
  else if ((e.key === "ArrowLeft" || e.key === "ArrowRight") && ring.chosen >= 0) {
    ring.angles[ring.chosen] += e.key === "ArrowLeft" ? 0.05 : -0.05;
    ring.moved = ring.byKey = true;
  } else if (e.key === " ") runOrPause(ring);
  else if (e.key === "s" || e.key === "r") {
    ring.byKey = true;
    if (e.key === "s") advanceOnce(ring);
    else {
      ring.scatter++;
      restart(ring);
    }
  } else return;
  e.preventDefault();
  tick(ring);
}

function advanceOnce(ring) {
  ring.running = false;
  advance(ring);
}

/** @param {CircleState} ring */
export function stepOnce(ring) {
  advanceOnce(ring);
  tick(ring);
  report(ring);
}

/** @param {CircleState} ring */
export function runOrPause(ring) {
  ring.running = !ring.running;
  tick(ring);
  if (!ring.running) report(ring);
}
