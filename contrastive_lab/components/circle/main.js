// Points on a circle under a loss: they follow its gradient, step by step, in the browser.

import { tick } from "./frame.js";
import { build, showStepSize } from "./layout.js";
import { readAngles, restart } from "./points.js";
import { putFurther, showFurther } from "../shared/further_knobs.js";
import { setKnob, toSlider } from "../shared/knob.js";
import { showLesson } from "../shared/lesson.js";
import { languageOf, unpack } from "../shared/transport.js";
import { _, mountIn } from "../shared/locale.js";

/**
 * @param {any} parent the element that it fills
 * @param {Uint8Array} blob what pack of shared/transport.py gives; another one may follow
 * @param {Host} host where it stands
 * @returns {() => void} takes it away
 */
export function mount(parent, blob, host) {
  const data = unpack(blob);
  const ring = parent._ring || (parent._ring = build(parent));
  ring.send = host.report;
  applyMeta(ring, data.meta);
  showLesson(ring.lesson, data.meta.lesson);
  tick(ring);
  return () => {
    cancelAnimationFrame(ring.frame);
    ring.observer.disconnect();
    ring.root.remove();
    parent._ring = null;
  };
}

/** @param {PartArguments} component */
export default function ({ parentElement, data, setStateValue }) {
  return mountIn(mount, parentElement, data, languageOf(data), { report: setStateValue });
}

/**
 * @param {CircleState} ring
 * @param {any} meta as circle/__init__.py packs it
 */
export function applyMeta(ring, meta) {
  const name = meta.content,
    first = ring.name === undefined;
  ring.meta = meta;
  ring.kernel = { ...meta.kernel };
  ring.reports ??= meta.heard ?? 0;
  const { knob } = meta,
    isOlder = !first && (ring.dragging || ring.reports > (meta.heard ?? ring.reports));
  ring.slider.disabled = !knob;
  ring.knobName.textContent = knob ? knob.label : _("no setting to drag");
  ring.slider.setAttribute("aria-label", ring.knobName.textContent);
  ring.readout.setAttribute("aria-label", _("{setting}, as a number", { setting: ring.knobName.textContent }));
  ring.readout.disabled = !knob;
  if (!isOlder) showFurther(ring.further, meta.more);
  putFurther(ring.further, ring.kernel);
  if (knob && isOlder)
    setKnob(ring, ring.value); // what is in the hand, or was told since, is not moved
  else if (knob) {
    ring.slider.value = toSlider(knob, knob.value);
    setKnob(ring, knob.value);
  }
  if (ring.name === name) return;
  ring.name = name;
  if (first) {
    ring.points.value = meta.start.points;
    ring.groups.value = meta.start.groups;
    ring.towers.checked = Boolean(meta.start.towers);
    ring.scatter = meta.start.scatter;
    ring.speed.value = meta.start.speed;
    showStepSize(ring);
  }
  restart(ring);
  const places = first && readAngles(meta.start.at, ring.n);
  if (places) Object.assign(ring, { angles: places, moved: true });
}
