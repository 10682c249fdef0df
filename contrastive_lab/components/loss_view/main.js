// The Loss Lab: matrix, one anchor's bars, and panels, all redrawn in the browser while a knob is
// dragged. The server hears of a value when it is let go.

import { schedule } from "./drag.js";
import { draw } from "./frame.js";
import { build } from "./layout.js";
import { library } from "./library.js";
import { applyKernel, load, metaOf } from "./load.js";
import { saveCsv, savePng } from "./save.js";
import { readSecond } from "./second_panel.js";
import { showLesson } from "../shared/lesson.js";
import { mountIn } from "../shared/locale.js";
import { languageOf, unpack } from "../shared/transport.js";

/**
 * @param {any} parent the element that it fills
 * @param {Uint8Array} blob what pack of shared/transport.py gives; another one may follow
 * @param {Host} host where it stands
 * @returns {() => void} takes it away
 */
export function mount(parent, blob, host) {
  const data = unpack(blob),
    meta = metaOf(data);
  const lab = parent._lab || (parent._lab = build(parent, meta.start));
  lab.send = host.report;
  lab.redraw = () => draw(lab);
  if (lab.key !== meta.content) load(lab, data);
  else applyKernel(lab, meta);
  lab.fixed = lab.kernel ? null : library(lab.M, lab.n, lab.w, data.first.computed, meta);
  readSecond(lab, data);
  showLesson(lab.lesson, meta.lesson);
  schedule(lab, true);
  save(lab, meta.export);
  return () => {
    cancelAnimationFrame(lab.frame);
    lab.resize.disconnect();
    lab.root.remove();
    lab.empty.remove();
    parent._lab = null;
  };
}

/** What the host's menu asked for since the last time. */
function save(lab, [what, count]) {
  const isNew = count > (lab.exported ?? count);
  lab.exported = count;
  if (isNew) (what === "csv" ? saveCsv : savePng)(lab);
}

/**
 * @param {PartArguments} component
 */
export default function ({ parentElement, data, setStateValue }) {
  return mountIn(mount, parentElement, data, languageOf(data), { report: setStateValue });
}
