// One frame of the live loss view: the loss is computed again where it has to be, then all is drawn.

import { report, schedule } from "./drag.js";
import { drawLetters } from "./formula/panel.js";
import { drawFigures } from "./figures.js";
import { lessonFacts } from "./lesson_facts.js";
import { describe } from "./legend.js";
import { orderOf } from "./order.js";
import { drawPushes } from "./pushes.js";
import { isAsked } from "./question.js";
import { drawTwo } from "./second_panel.js";
import { sentence } from "./sentence.js";
import { drawStage } from "./stages.js";
import { drawSweep } from "./sweep.js";
import { pulse } from "../star/scene.js";
import { theme } from "../shared/canvas.js";
import { say } from "../shared/dom.js";
import { evaluate } from "../shared/kernels.js";
import { checkLesson } from "../shared/lesson.js";
import { _ } from "../shared/locale.js";

/** @param {LossViewState} lab */
export function draw(lab) {
  if (!lab.S || !lab.root.isConnected) return;
  if (lab.stale) {
    if (lab.kernel) lab.out = evaluate(lab.S, lab.M, lab.n, lab.w, lab.kernel, lab.out);
    else lab.out = lab.fixed;
    [lab.rows, lab.columns] = orderOf(lab);
    lab.isPainted = false;
  }
  if (!lab.dragging || !lab.ink) Object.assign(lab, theme(lab.root));
  drawSweep(lab);
  drawStage(lab);
  // texts come after what is drawn: to measure words on a canvas lays out the page where a text has changed
  drawFigures(lab);
  lab.sentence.setAttribute("aria-busy", String(Boolean(lab.dragging))); // read out once it is let go
  lab.hint.setAttribute("aria-busy", String(Boolean(lab.dragging)));
  say(lab.sentence, sentence(lab));
  say(lab.named, _("{title}: loss of the batch {value}", { title: lab.meta.title, value: lab.loss.textContent }));
  lab.scene.canvas.setAttribute("aria-label", lab.sentence.textContent);
  describe(lab);
  drawPushes(lab);
  drawLetters(lab);
  drawTwo(lab);
  const asked = isAsked(lab),
    before = lab.lesson.done;
  const regions = {
    knob: lab.knobBar,
    further: lab.further.root,
    matrix: lab.matrix,
    bars: lab.barSide,
    star: lab.scene.canvas,
  };
  checkLesson(lab.lesson, () => lessonFacts(lab), regions, lab.dragging);
  if (asked && lab.lesson.done) schedule(lab); // with colors and names again
  if (lab.lesson.done && !before) {
    pulse(lab.scene);
    report(lab);
  }
  lab.stale = false;
  if (lab.pending) {
    lab.timings.push(performance.now() - lab.pending);
    lab.pending = 0;
  }
}
