// Knobs below the first: each a slider with a field, and a switch where it may be off.

import { el } from "./dom.js";
import { knobPair, knobText, nameKnob, toSlider } from "./knob.js";
import { _ } from "./locale.js";

/**
 * An empty bar, and the button that shows what is off. `turn(stamp, knob)`: a value moves in the browser alone;
 * `told()`: it was let go.
 *
 * @param {{ turn: (stamp: number, knob: Knob) => void, told: () => void }} heard
 */
export function buildFurther(heard) {
  /** @type {any} */
  const further = { ...heard, rows: [], values: {}, names: "" };
  further.root = el("div", { class: "bar further", hidden: "" });
  further.all = el("button", { type: "button", class: "further-all", "aria-expanded": "false" }, "⋯");
  further.all.title = _("More settings of this loss");
  further.all.onclick = () => further.all.setAttribute("aria-expanded", String(further.root.classList.toggle("all")));
  return further;
}

/**
 * Show these knobs at their values; the same ones keep their place and the focus.
 *
 * @param {any} further
 * @param {any[] | undefined} knobs
 */
export function showFurther(further, knobs = []) {
  const names = JSON.stringify(knobs.map((knob) => [knob.name, knob.label]));
  if (further.names !== names) {
    further.names = names;
    further.values = {};
    further.rows = knobs.map((knob) => rowOf(further, knob));
    further.root.replaceChildren(...further.rows.map((row) => row.root));
    further.root.hidden = !knobs.length;
  }
  knobs.forEach((knob, k) => set(further, further.rows[k], knob.value));
}

/**
 * The kernel with the values of the knobs.
 *
 * @param {any} further
 * @param {any} kernel
 */
export function putFurther(further, kernel) {
  if (kernel) Object.assign(kernel, further.values);
}

function rowOf(further, knob) {
  /** @type {any} */
  const row = { knob, last: knob.value ?? knob.first };
  const turn = (v, stamp) => {
    set(further, row, v);
    further.turn(stamp, knob);
  };
  Object.assign(
    row,
    knobPair(() => knob, { turn, told: further.told }),
  );
  nameKnob(row, knob.label);
  row.root = el(
    "div",
    { class: knob.first === null ? "knob" : "knob optional" },
    switchOf(further, row, turn),
    row.slider,
    row.readout,
  );
  return row;
}

/** The knob's name; a box to check where the knob may be off. */
function switchOf(further, row, turn) {
  const { knob } = row;
  if (knob.first === null) return el("span", {}, knob.label);
  row.box = el("input", { type: "checkbox" });
  row.box.onchange = () => {
    turn(row.box.checked ? row.last : null, 0);
    further.told();
  };
  return el("label", {}, row.box, " ", knob.label);
}

function set(further, row, v) {
  const isOff = v === null;
  further.values[row.knob.name] = v;
  if (!isOff) row.last = v;
  if (row.box) row.box.checked = !isOff;
  row.root.classList.toggle("on", !isOff);
  row.slider.disabled = row.readout.disabled = isOff;
  row.slider.value = String(toSlider(row.knob, row.last));
  row.slider.setAttribute("aria-valuetext", isOff ? _("off") : knobText(v));
  if (!row.readout.dataset.typed) row.readout.value = isOff ? "" : knobText(v);
}
