// The Loss Lab: matrix, one anchor's bars, and panels, all redrawn in the browser while a knob is
// dragged. The server hears of a value when it is let go.

import { schedule } from "./drag.js";
import { draw } from "./frame.js";
import { build } from "./layout.js";
import { library } from "./library.js";
import { applyKernel, load } from "./load.js";
import { readSecond } from "./second_panel.js";
import { unpack } from "../shared/transport.js";

/**
 * @param {PartArguments} component
 */
export default function (component) {
  const { parentElement, setStateValue } = component,
    data = unpack(component.data);
  const lab = parentElement._lab || (parentElement._lab = build(parentElement, data.meta.start || {}));
  lab.send = setStateValue;
  lab.redraw = () => draw(lab);
  if (lab.key !== data.meta.key) load(lab, data);
  else applyKernel(lab, data.meta);
  lab.fixed = lab.kernel ? null : library(lab.M, lab.n, lab.w, data, data.meta);
  readSecond(lab, data);
  schedule(lab, true);
  return () => {
    cancelAnimationFrame(lab.frame);
    lab.resize.disconnect();
    lab.root.remove();
    lab.empty.remove();
    parentElement._lab = null;
  };
}
