// One frame of the circle: a step where it runs, the forces, the picture.

import { drawHistory, drawRing } from "./draw.js";
import { compute } from "./forces.js";
import { advance, restart } from "./points.js";
import { report } from "./save.js";
import { checkLesson } from "../shared/lesson.js";
import { _ } from "../shared/locale.js";

const STEPS = 420, // that a circle without buttons takes by itself, about seven seconds
  ROUNDS = 6; // before it rests

/**
 * @param {CircleState} ring
 */
export function tick(ring) {
  ring.run.textContent = ring.running ? _("Pause") : _("Run");
  if (ring.frame) return;
  ring.frame = requestAnimationFrame(() => {
    ring.frame = 0;
    if (!ring.root.isConnected) return;
    const start = performance.now();
    if (ring.meta.bare && ring.step >= STEPS) again(ring);
    if (ring.running) advance(ring);
    compute(ring);
    drawRing(ring);
    drawHistory(ring);
    look(ring);
    if (ring.running) {
      ring.timings.push(performance.now() - start);
      tick(ring);
    }
  });
}

/** A lesson that is done while the points run is told, so that the address keeps their places. */
function look(ring) {
  const before = ring.lesson.done;
  checkLesson(ring.lesson, () => ring, { knob: ring.knobBar, ring: ring.canvas });
  if (ring.lesson.done && !before && ring.running) report(ring);
}

/** From other places once more, until it has been seen. */
function again(ring) {
  ring.running = ++ring.scatter < ROUNDS;
  if (ring.running) restart(ring);
}
