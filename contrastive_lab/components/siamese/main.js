// BYOL and SimSiam on a circle: what collapses, and what keeps it from collapsing.

import { build, show } from "./layout.js";
import { restart, tick } from "./course.js";
import { showFurther } from "../shared/further_knobs.js";
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
  /** @type {any} */
  const { meta } = unpack(blob),
    isFirst = !parent._siamese,
    part = (parent._siamese ||= build(parent));
  part.send = host.report;
  part.reports ??= meta.heard ?? 0;
  if (isFirst) {
    Object.assign(part, meta.start);
    part.speedSlider.value = meta.start.speed;
    restart(part);
  }
  if (isFirst || !(part.dragging || part.reports > (meta.heard ?? part.reports))) showFurther(part.further, meta.knobs);
  show(part);
  showLesson(part.lesson, meta.lesson);
  tick(part);
  return () => {
    cancelAnimationFrame(part.frame);
    part.observer.disconnect();
    part.root.remove();
    parent._siamese = null;
  };
}

/** @param {PartArguments} component */
export default function ({ parentElement, data, setStateValue }) {
  return mountIn(mount, parentElement, data, languageOf(data), { report: setStateValue });
}
