// One frame of the circle: a step where it runs, the forces, the picture.

import { drawRing } from "./draw.js";
import { compute } from "./forces.js";
import { advance } from "./points.js";
import { report } from "./save.js";
import { checkLesson } from "../shared/lesson.js";
import { isStill, showRunning } from "../shared/stage.js";

const AT_ONCE = 300; // steps of a run without motion

/** @param {CircleState} ring */
export function tick(ring) {
  showRunning(ring.run, ring.running);
  if (ring.frame) return;
  ring.frame = requestAnimationFrame(() => {
    ring.frame = 0;
    if (!ring.root.isConnected) return;
    const start = performance.now();
    if (ring.running && ring.held < 0) {
      advance(ring);
      if (isStill()) runToEnd(ring);
    }
    compute(ring);
    drawRing(ring);
    look(ring);
    if (ring.running && ring.held < 0) {
      ring.timings.push(performance.now() - start);
      tick(ring);
    }
  });
}

/** Where the points have got to after many steps, without showing them on the way. */
function runToEnd(ring) {
  for (let k = 1; k < AT_ONCE; k++) advance(ring);
  ring.running = false;
  tick(ring);
  report(ring);
}

/** A lesson that is done while the points run is told, so that the address keeps their places. */
function look(ring) {
  const before = ring.lesson.done;
  checkLesson(ring.lesson, () => ring, { knob: ring.knobBar, ring: ring.canvas });
  if (ring.lesson.done && !before && ring.running) report(ring);
}
