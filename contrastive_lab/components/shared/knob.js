// The knob of a loss on a slider of 1,000 positions, linear or logarithmic (from 0: a fourth power), and as a field to
// type in.

import { el, say } from "./dom.js";
import { _ } from "./locale.js";

const POWER = 4; // of a scale with fine steps near zero, which a logarithm never reaches

/**
 * @param {Knob} knob
 * @param {number} v
 */
export function toSlider(knob, v) {
  const t = !knob.log
    ? (v - knob.low) / (knob.high - knob.low)
    : knob.low > 0
      ? Math.log(v / knob.low) / Math.log(knob.high / knob.low)
      : Math.pow(v / knob.high, 1 / POWER);
  return Math.round(1000 * t);
}

/**
 * @param {Knob} knob
 * @param {number} position
 */
export function fromSlider(knob, position) {
  const t = position / 1000;
  const v = !knob.log
    ? knob.low + t * (knob.high - knob.low)
    : knob.low > 0
      ? knob.low * Math.pow(knob.high / knob.low, t)
      : knob.high * Math.pow(t, POWER);
  return knob.is_whole ? Math.round(Number(v.toPrecision(3))) : Number(v.toPrecision(4));
}

/**
 * The knob's value as a field to type in; `then(value)` hears of what was typed. Until then an older answer of the
 * server may not take it back: a browser tells of no change once a script has set the field. A comma counts as a point,
 * and what is no number gives way to the value before.
 *
 * @param {() => Knob | null} knobOf
 * @param {(value: any) => void} then
 */
function knobField(knobOf, then) {
  const field = el("input", { type: "number", step: "any" });
  let before = "";
  field.onfocus = () => {
    before = field.value;
  };
  field.onbeforeinput = (e) => {
    if (!e.data?.includes(",")) return;
    e.preventDefault();
    document.execCommand("insertText", false, e.data.replace(",", ".")); // a field of numbers has no other way
  };
  field.oninput = () => {
    field.dataset.typed = "yes";
  };
  field.onblur = () => {
    delete field.dataset.typed;
  };
  field.onchange = () => {
    delete field.dataset.typed;
    const knob = knobOf(),
      v = knob?.is_whole ? Math.round(field.valueAsNumber) : field.valueAsNumber;
    if (!knob) return;
    if (!Number.isFinite(v)) {
      field.value = before;
      return;
    }
    tellRange(field, rangeTold(knob, v));
    const taken = Math.min(knob.high, Math.max(knob.low, v));
    before = knobText(taken);
    then(taken);
  };
  return field;
}

/**
 * What is said of a typed value outside the knob's range; "" inside it.
 *
 * @param {Knob} knob
 * @param {number} v
 */
export function rangeTold(knob, v) {
  if (v >= knob.low && v <= knob.high) return "";
  return _("The range is {low} to {high}.", { low: knobText(knob.low), high: knobText(knob.high) });
}

/** Behind the field, until a value of the range is typed. */
function tellRange(field, text) {
  field._range ??= el("small", { role: "status", class: "range" });
  if (text && !field._range.isConnected) field.after(field._range);
  say(field._range, text);
  field._range.hidden = !text;
}

/**
 * A slider and a field that turn one knob. `turn(value, stamp)`: it moves in the browser alone; `told()`: it was let
 * go. A held arrow key changes the slider again and again: it counts as one drag until it is let go.
 *
 * @param {() => Knob | null} knobOf
 * @param {{ turn: (value: any, stamp: number) => void, told: () => void }} heard
 */
export function knobPair(knobOf, { turn, told }) {
  const slider = el("input", { type: "range", min: 0, max: 1000, step: 1 }),
    readout = knobField(knobOf, (v) => {
      slider.value = String(toSlider(knobOf(), v));
      turn(v, 0);
      told();
    });
  let byKey = false;
  slider.oninput = (e) => turn(fromSlider(knobOf(), slider.value), e.timeStamp);
  slider.onkeydown = (e) => {
    byKey = e.key !== "Tab";
  };
  slider.onkeyup = slider.onblur = () => {
    if (byKey) told();
    byKey = false;
  };
  slider.onchange = () => {
    if (!byKey) told();
  };
  return { slider, readout };
}

/**
 * The knob of a part with its name, as `part.knobBar`.
 *
 * @param {any} part
 * @param {{ turn: (value: any, stamp: number) => void, told: () => void }} heard
 */
export function buildKnob(part, heard) {
  Object.assign(
    part,
    { knobName: el("span", {}) },
    knobPair(() => part.meta.knob, heard),
  );
  part.knobBar = el("div", { class: "knob" }, part.knobName, part.slider, part.readout);
}

/**
 * Name and value of the knob in `part.meta`, or that there is none.
 *
 * @param {any} part
 * @param {boolean} [isHeld] it stays where it is
 */
export function showKnob(part, isHeld = false) {
  const { slider, readout } = part,
    { knob } = part.meta,
    name = knob ? knob.label : _("no setting to drag");
  slider.disabled = slider.hidden = readout.disabled = readout.hidden = !knob;
  part.knobName.textContent = name;
  nameKnob(part, name);
  if (!knob) return;
  const v = isHeld ? part.value : knob.value;
  slider.value = String(toSlider(knob, v));
  setKnob(part, v);
}

/**
 * What a slider and its field are called.
 *
 * @param {{ slider: any, readout: any }} pair
 * @param {string} name
 */
export function nameKnob({ slider, readout }, name) {
  slider.setAttribute("aria-label", name);
  readout.setAttribute("aria-label", _("{setting}, as a number", { setting: name }));
}

/**
 * With the digits that a value of the slider or of the field has, without zeros that say nothing.
 *
 * @param {number} v
 */
export function knobText(v) {
  return String(Number(v.toPrecision(6)));
}

/**
 * A part's value, its kernel and what is read beside its slider.
 *
 * @param {any} part
 * @param {number} v
 */
export function setKnob(part, v) {
  part.value = v;
  if (part.kernel && part.kernel.knob) part.kernel[part.kernel.knob] = v;
  if (!part.readout.dataset.typed) part.readout.value = knobText(v);
  part.slider.setAttribute("aria-valuetext", knobText(v));
  if (!part.scale) return;
  part.scale.hidden = !part.meta.towers?.length || part.kernel?.knob !== "temperature";
  if (!part.scale.hidden) say(part.scale, _("scale {scale}", { scale: Number((1 / v).toPrecision(4)) }));
}

/**
 * The letter before the comma of a knob's label, which is a wide one in Chinese.
 *
 * @param {{ label: string }} knob
 */
export function symbolOf({ label }) {
  return label.split(/[,，]/)[0];
}
