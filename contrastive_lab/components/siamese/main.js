// BYOL and SimSiam on a circle: what collapses, and what keeps it from collapsing.

import { build, show } from "./layout.js";
import { restart, tick } from "./course.js";
import { showFurther } from "../shared/further_knobs.js";
import { showLesson } from "../shared/lesson.js";
import { inApp, isOlder, partOf } from "../shared/part.js";

function showAnswer(part, { meta }) {
  const isFirst = part.seed === undefined;
  if (isFirst) {
    Object.assign(part, meta.start);
    part.speedSlider.value = meta.start.speed;
    restart(part);
  }
  if (isFirst || !isOlder(part, meta)) showFurther(part.further, meta.knobs);
  show(part);
  showLesson(part.lesson, meta.lesson);
  tick(part);
}

export const mount = partOf("_siamese", build, showAnswer, tick);

export default inApp(mount);
