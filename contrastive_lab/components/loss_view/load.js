// What the server sent: a batch's bytes, the loss with its knob, what the library computed.

import { schedule } from "./drag.js";
import { beginMotion } from "./motion.js";
import { keepPinned, showTwo } from "./second_panel.js";
import { showStage } from "./stages.js";
import { say } from "../shared/dom.js";
import { putFurther, showFurther } from "../shared/further_knobs.js";
import { isOlder } from "../shared/part.js";
import { showForward } from "../shared/stage.js";
import { showKnob } from "../shared/knob.js";
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
  const { kernel, reason } = meta,
    isStale = isOlder(lab, meta);
  lab.empty.hidden = !reason;
  lab.empty.textContent = reason || "";
  lab.tools.hidden = Boolean(meta.stage);
  showForward(lab.forward, meta.forward);
  const hasMargin = kernel?.family === "hinge";
  say(lab.panels.scores.title, hasMargin ? _("Margin") : _("Histogram"));
  lab.panels.scores.root.classList.toggle("hinge", hasMargin);
  if (isStale && !isNew) return; // what is in the hand, or was told since, is not moved
  showStage(lab, meta.stage || lab.stage);
  lab.kernel = kernel ? { ...kernel } : null;
  showFurther(lab.further, meta.more);
  putFurther(lab.further, lab.kernel);
  showKnob(lab);
}
