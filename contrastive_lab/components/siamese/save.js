// What is saved of the training, and what the server hears.

import { theme } from "../shared/canvas.js";
import { offerCsv, offerPicture } from "../shared/download.js";
import { tellChosen } from "../shared/part.js";

/**
 * The server hears of what was chosen, not of the steps.
 *
 * @param {any} part
 * @param {Record<string, any>} [pressed] in a lesson
 */
export function report(part, pressed = {}) {
  const { method, predictor, stopGradient, seed, speedSlider } = part;
  tellChosen(part, {
    ...{ method, predictor, stop_gradient: stopGradient, seed, speed: Number(speedSlider.value) },
    ...pressed,
  });
}

/** @param {any} part */
export function savePicture(part) {
  const { ink, paper } = theme(part.root);
  offerPicture([part.canvas, part.course.canvas], paper, "collapse.png", part.note.textContent, ink);
}

/**
 * Where both views of every image are, and the course.
 *
 * @param {any} part
 */
export function saveCourse(part) {
  const points = part.places.points.map(([a, b], k) => [Math.floor(k / 2) + 1, "ab"[k % 2], Math.atan2(b, a)]);
  offerCsv(
    [["image", "view", "angle"], ...points, [], ["step", "spread", "mean_resultant_length", "loss"], ...part.history],
    "collapse.csv",
  );
}
