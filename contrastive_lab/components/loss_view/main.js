// The Loss Lab: matrix, one anchor's bars, and panels, all redrawn in the browser while a knob is
// dragged. The server hears of a value when it is let go.

import { schedule } from "./drag.js";
import { draw } from "./frame.js";
import { build } from "./layout.js";
import { library } from "./library.js";
import { applyKernel, load, metaOf } from "./load.js";
import { saveCsv, savePng } from "./save.js";
import { readSecond } from "./second_panel.js";
import { placeKnob } from "./stages.js";
import { showLesson } from "../shared/lesson.js";
import { inApp, partOf, saveAsked } from "../shared/part.js";

const begin = (data) => build(metaOf(data).start);

function show(lab, data) {
  const meta = metaOf(data);
  lab.redraw = () => draw(lab);
  if (lab.key !== meta.content) load(lab, data);
  else applyKernel(lab, meta);
  lab.fixed = lab.kernel ? null : library(lab.M, lab.n, lab.w, data.first.computed, meta);
  readSecond(lab, data);
  showLesson(lab.lesson, meta.lesson);
  placeKnob(lab);
  schedule(lab, true);
  saveAsked(lab, meta.export, { png: savePng, csv: saveCsv });
}

export const mount = partOf("_lab", begin, show, schedule);

export default inApp(mount);
