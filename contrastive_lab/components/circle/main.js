// Points on a circle under a loss: they follow its gradient, step by step, in the browser.

import { tick } from "./frame.js";
import { build, showStepSize } from "./layout.js";
import { readAngles, restart } from "./points.js";
import { putFurther, showFurther } from "../shared/further_knobs.js";
import { showKnob } from "../shared/knob.js";
import { showLesson } from "../shared/lesson.js";
import { inApp, isOlder, partOf } from "../shared/part.js";

function show(ring, { meta }) {
  applyMeta(ring, meta);
  showLesson(ring.lesson, meta.lesson);
  tick(ring);
}

export const mount = partOf("_ring", build, show, tick);

export default inApp(mount);

/**
 * @param {CircleState} ring
 * @param {any} meta as circle/__init__.py packs it
 */
export function applyMeta(ring, meta) {
  const name = meta.content,
    first = ring.name === undefined;
  ring.meta = meta;
  ring.kernel = { ...meta.kernel };
  const isHeld = isOlder(ring, meta) && !first; // what is in the hand, or was told since, is not moved
  if (!isHeld) showFurther(ring.further, meta.more);
  putFurther(ring.further, ring.kernel);
  showKnob(ring, isHeld);
  if (ring.name === name) return;
  ring.name = name;
  if (first) {
    ring.points.value = meta.start.points;
    ring.groups.value = meta.start.groups;
    ring.towers.checked = Boolean(meta.start.towers);
    ring.scatter = meta.start.scatter;
    ring.speed.value = meta.start.speed;
    showStepSize(ring);
  }
  restart(ring);
  const places = first && readAngles(meta.start.at, ring.n);
  if (places) Object.assign(ring, { angles: places, moved: true });
}
