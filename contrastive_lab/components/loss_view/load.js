// What the server sent: a batch's bytes, the loss with its knob, what the library computed.

import { schedule } from "./drag.js";
import { beginMotion } from "./motion.js";
import { keepPinned, showTwo } from "./second_panel.js";
import { showStage } from "./stages.js";
import { say } from "../shared/dom.js";
import { putFurther, showFurther } from "../shared/further_knobs.js";
import { setKnob, toSlider } from "../shared/knob.js";
import { _ } from "../shared/locale.js";

/**
 * What is said of the view, of its first setting and of its axes, as one.
 *
 * @param {any} data
 */
export function metaOf({ meta }) {
  return { ...meta, ...meta.first, ...meta.axes };
}

/**
 * The bytes of a batch are read once; its knobs may come again and again.
 *
 * @param {LossViewState} lab
 * @param {any} data
 */
export function load(lab, data) {
  const meta = metaOf(data);
  keepPinned(lab, meta.name);
  Object.assign(lab, {
    hasStar: data.axes.thumbnails.length > 0 && [...meta.rowThumbs, ...meta.columnThumbs].every((k) => k >= 0),
    key: meta.content,
    n: meta.names.length,
    w: meta.columnNames.length,
    anchor: Math.min(meta.anchor || 0, Math.max(0, meta.names.length - 1)),
  });
  lab.S = new Float32Array(data.first.scores.slice().buffer);
  lab.M = data.first.mask.slice();
  Object.assign(lab, { out: null, sprite: null, cache: {}, hover: null, barFrom: 0 });
  if (data.axes.thumbnails.length) {
    createImageBitmap(new Blob([data.axes.thumbnails], { type: "image/png" })).then((b) => {
      lab.sprite = b;
      schedule(lab, true);
    });
  }
  lab.image = new ImageData(Math.max(1, lab.w), Math.max(1, lab.n));
  lab.pixels = new Uint32Array(lab.image.data.buffer);
  lab.buffer = new OffscreenCanvas(Math.max(1, lab.w), Math.max(1, lab.n));
  lab.grained = lab.grainedBuffer = null;
  let low = Infinity,
    high = -Infinity;
  for (let k = 0; k < lab.S.length; k++) {
    if (lab.M[k] === 0 || lab.M[k] === 3) continue;
    if (lab.S[k] < low) low = lab.S[k];
    if (lab.S[k] > high) high = lab.S[k];
  }
  lab.range = low <= high ? [low, high] : [0, 1];
  lab.faces.hidden = !meta.rowThumbs.length;
  beginMotion(lab);
  applyKernel(lab, meta, true);
  showTwo(lab);
}

/**
 * @param {LossViewState} lab
 * @param {any} meta
 * @param {boolean} [isNew] the batch or the loss is another one
 */
export function applyKernel(lab, meta, isNew = false) {
  lab.meta = meta;
  lab.reports ??= meta.heard ?? 0;
  const isOlder = lab.dragging || lab.reports > (meta.heard ?? lab.reports);
  const { knob, kernel, reason } = meta;
  lab.empty.hidden = !reason;
  lab.empty.textContent = reason || "";
  lab.tools.hidden = Boolean(meta.stage);
  lab.forward.hidden = !meta.forward;
  say(lab.forward, meta.forward?.text ?? "");
  const hasMargin = kernel?.family === "hinge";
  say(lab.panels.scores.title, hasMargin ? _("Margin") : _("Histogram"));
  lab.panels.scores.root.classList.toggle("hinge", hasMargin);
  if (isOlder && !isNew) return; // what is in the hand, or was told since, is not moved
  showStage(lab, meta.stage || lab.stage);
  lab.kernel = kernel ? { ...kernel } : null;
  showFurther(lab.further, meta.more);
  putFurther(lab.further, lab.kernel);
  lab.slider.disabled = lab.slider.hidden = !knob;
  lab.knobName.textContent = knob ? knob.label : _("no setting to drag");
  lab.slider.setAttribute("aria-label", lab.knobName.textContent);
  lab.readout.setAttribute("aria-label", _("{setting}, as a number", { setting: lab.knobName.textContent }));
  lab.readout.disabled = lab.readout.hidden = !knob;
  if (!knob) {
    lab.readout.value = "";
    return;
  }
  lab.slider.value = toSlider(knob, knob.value);
  setKnob(lab, knob.value);
}
