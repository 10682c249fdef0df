// One frame of the circle: a step where it runs, the forces, the picture.

import { drawHistory, drawRing } from "./draw.js";
import { compute } from "./forces.js";
import { advance } from "./points.js";

/**
 * @param {CircleState} ring
 */
export function tick(ring) {
  ring.run.textContent = ring.running ? "Pause" : "Run";
  if (ring.frame) return;
  ring.frame = requestAnimationFrame(() => {
    ring.frame = 0;
    if (!ring.root.isConnected) return;
    const start = performance.now();
    if (ring.running) advance(ring);
    compute(ring);
    drawRing(ring);
    drawHistory(ring);
    if (ring.running) {
      ring.timings.push(performance.now() - start);
      tick(ring);
    }
  });
}
