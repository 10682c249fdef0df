// One frame of the live loss view: the loss is computed again where it has to be, then all is drawn.

import { drawBars } from "./bars.js";
import { report, schedule } from "./drag.js";
import { drawFigures } from "./figures.js";
import { lessonFacts } from "./lesson_facts.js";
import { drawMatrix, paintMatrix } from "./matrix.js";
import { drawPanel } from "./panels.js";
import { isAsked } from "./question.js";
import { sentence } from "./sentence.js";
import { theme } from "../shared/canvas.js";
import { say } from "../shared/dom.js";
import { evaluate } from "../shared/kernels.js";
import { checkLesson } from "../shared/lesson.js";

/**
 * @param {LossViewState} lab
 */
export function draw(lab) {
  if (!lab.S || !lab.root.isConnected) return;
  if (lab.stale) {
    if (lab.kernel) lab.out = evaluate(lab.S, lab.M, lab.n, lab.w, lab.kernel, lab.out);
    else lab.out = lab.fixed;
    paintMatrix(lab);
  }
  Object.assign(lab, theme(lab.root));
  drawFigures(lab);
  lab.sentence.setAttribute("aria-busy", String(Boolean(lab.dragging))); // read out once it is let go
  lab.hint.setAttribute("aria-busy", String(Boolean(lab.dragging)));
  say(lab.sentence, sentence(lab));
  drawMatrix(lab);
  drawBars(lab);
  drawPanel(lab);
  const asked = isAsked(lab),
    before = lab.lesson.done;
  checkLesson(lab.lesson, () => lessonFacts(lab), {
    knob: lab.knobBar,
    further: lab.further.root,
    matrix: lab.matrix,
    bars: lab.barSide,
  });
  if (asked && lab.lesson.done) schedule(lab); // with colors and names again
  if (lab.lesson.done && !before && !lab.dragging) report(lab); // a drag tells it at its end
  lab.stale = false;
  if (lab.pending) {
    lab.timings.push(performance.now() - lab.pending);
    lab.pending = 0;
  }
}
