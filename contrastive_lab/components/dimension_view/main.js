// A loss over dimensions: the matrix of samples beside the matrix of dimensions, and the terms of the loss, computed
// again in the browser while a knob is dragged. The server hears of a value when it is let go.

import { buildView } from "./layout.js";
import { BINS } from "./histogram.js";
import { drawMatrices, paintMatrices } from "./matrices.js";
import { saveCsv, savePng } from "./save.js";
import { sentence } from "./sentence.js";
import { drawTerms, totalOf } from "./terms.js";
import { theme } from "../shared/canvas.js";
import { cosines, dimensionsOf, termsOf } from "../shared/dimensions.js";
import { say } from "../shared/dom.js";
import { putFurther, showFurther } from "../shared/further_knobs.js";
import { extend, gaussianOf, gaussianTerms, ranked } from "../shared/gaussian.js";
import { checkLesson, showLesson } from "../shared/lesson.js";
import { inApp, isOlder, partOf, saveAsked } from "../shared/part.js";
import { showForward } from "../shared/stage.js";

function show(lab, data) {
  const { meta } = data;
  Object.assign(lab, { redraw: () => draw(lab), meta });
  if (lab.key !== meta.content) load(lab, data);
  if (!isOlder(lab, meta) || lab.isNew) {
    showFurther(lab.further, meta.knobs); // what is in the hand, or was told since, is not moved
    putFurther(lab.further, lab.knobs);
  }
  lab.isNew = false;
  showLesson(lab.lesson, meta.lesson);
  showForward(lab.forward, meta.forward);
  lab.schedule(true);
  saveAsked(lab, meta.export, { png: savePng, csv: saveCsv });
}

export const mount = partOf("_lab", buildView, show, (lab) => lab.schedule());

export default inApp(mount);

const BUDGET = 8; // milliseconds of a frame for the statistics of further directions

/** The bytes of a batch are read once; its knobs may come again and again. */
function load(lab, { meta, views }) {
  const Z = new Float32Array(views.slice().buffer),
    m = meta.names.length,
    d = Z.length / m;
  Object.assign(lab, { key: meta.content, isNew: true, knobs: {}, which: 0, m });
  const isGaussian = meta.form === "gaussian";
  lab.found = isGaussian ? gaussianOf(Z, m / 2, d) : dimensionsOf(Z, m / 2, d, meta.form);
  Object.assign(lab.samples, { size: m, values: cosines(Z, m, d), hover: null, buffer: null });
  Object.assign(lab.dimensions, { size: lab.found.shown?.length ?? BINS, hover: null, buffer: null, painted: "" });
  lab.shadeBar.hidden = isGaussian;
  lab.directionBar.hidden = !isGaussian;
}

/** The terms at the knobs; a Gaussian term over the directions that are computed in time, the rest in later frames. */
function compute(lab) {
  if (lab.found.form !== "gaussian") return termsOf(lab.found, lab.knobs);
  lab.count = lab.knobs.directions;
  const ready = extend(lab.found, lab.count, BUDGET);
  lab.order = ranked(lab.found, ready);
  if (ready < lab.count) lab.schedule(true);
  return gaussianTerms(lab.found, lab.knobs, ready);
}

/** One frame. */
function draw(lab) {
  if (!lab.found || !lab.root.isConnected) return;
  Object.assign(lab, theme(lab.root));
  if (lab.stale) {
    lab.stale = false; // set again where more is to be computed
    lab.terms = compute(lab);
    paintMatrices(lab);
  }
  lab.sentence.setAttribute("aria-busy", String(Boolean(lab.dragging))); // read out once it is let go
  say(lab.sentence, sentence(lab));
  drawTerms(lab);
  drawMatrices(lab);
  const regions = { knobs: lab.further.root, matrix: lab.dimensions.canvas };
  checkLesson(lab.lesson, () => factsOf(lab), regions, lab.dragging);
}

/** What a lesson's checks look at: the share of terms in the loss. */
function factsOf({ terms, knobs }) {
  const total = totalOf(terms),
    share = (key) => (terms.find((term) => term.key === key)?.part ?? NaN) / total;
  return { varianceShare: share("variance"), offDiagonalShare: share("off"), deviation: knobs.deviation };
}
