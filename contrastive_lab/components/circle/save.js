// What is saved of the circle, and what the server hears.

import { written } from "./points.js";
import { theme } from "../shared/canvas.js";
import { offerCsv, offerPicture } from "../shared/download.js";
import { tellChosen } from "../shared/part.js";

/**
 * The server hears of what was let go, and of what was pressed besides; while the points run it hears nothing of their
 * places.
 *
 * @param {CircleState} ring
 * @param {Record<string, any>} [pressed]
 */
export function report(ring, pressed = {}) {
  tellChosen(ring, {
    value: ring.meta.knob ? ring.value : null,
    groups: ring.count,
    points: ring.n,
    scatter: ring.scatter,
    towers: Number(ring.towers.checked),
    speed: Number(ring.speed.value),
    at: ring.moved ? written(ring.angles) : "",
    ...pressed,
  });
}

/** @param {CircleState} ring */
export function savePicture(ring) {
  const { ink, paper } = theme(ring.root);
  offerPicture([ring.canvas, ring.course.canvas], paper, "circle.png", ring.note.textContent, ink);
}

/**
 * Where every point is, the force on it, and the course of the loss.
 *
 * @param {CircleState} ring
 */
export function saveCircle(ring) {
  const points = Array.from(ring.angles, (a, i) => [
    i,
    ring.group[i],
    a,
    -ring.force[i],
    ring.out.loss[i],
    ring.tower[i],
  ]);
  offerCsv(
    [
      ["point", "group", "angle", "force", "loss", "tower"],
      ...points,
      [],
      ["step", "loss", "alignment", "uniformity"],
      ...ring.history,
    ],
    "circle.csv",
  );
}
