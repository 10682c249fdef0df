// Pointer and keys on the circle.

import { place } from "./draw.js";
import { tick } from "./frame.js";
import { advance } from "./points.js";
import { report } from "./save.js";

/**
 * @param {CircleState} ring
 * @param {any} e
 */
export function angleOf(ring, e) {
  const { x, y } = place(ring);
  return Math.atan2(y - e.offsetY, e.offsetX - x);
}

/**
 * @param {CircleState} ring
 * @param {any} e
 */
export function pointAt(ring, e) {
  const { x, y, r } = place(ring);
  let best = -1,
    near = 16 * 16;
  for (let i = 0; i < ring.n; i++) {
    const d = (x + r * Math.cos(ring.angles[i]) - e.offsetX) ** 2 + (y - r * Math.sin(ring.angles[i]) - e.offsetY) ** 2;
    if (d < near) {
      near = d;
      best = i;
    }
  }
  return best;
}

/**
 * @param {CircleState} ring
 * @param {any} e
 */
export function keys(ring, e) {
  if (e.key === "n" || e.key === "p") ring.chosen = (ring.chosen + (e.key === "n" ? 1 : -1) + ring.n) % ring.n;
  else if ((e.key === "ArrowLeft" || e.key === "ArrowRight") && ring.chosen >= 0) {
    ring.angles[ring.chosen] += e.key === "ArrowLeft" ? 0.05 : -0.05;
    ring.moved = ring.byKey = true;
  } else if (e.key === " ") runOrPause(ring);
  else if (e.key === "s") {
    ring.running = false;
    ring.byKey = true;
    advance(ring);
  } else return;
  e.preventDefault();
  tick(ring);
}

/**
 * @param {CircleState} ring
 */
export function runOrPause(ring) {
  ring.running = !ring.running;
  tick(ring);
  if (!ring.running) report(ring);
}
