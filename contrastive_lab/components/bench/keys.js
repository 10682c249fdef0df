// Which key means which class, and when keys belong to a field.

import { _ } from "../shared/locale.js";

/**
 * The classes that have a key, each with its key: all up to ten, else the likeliest. A digit is its own key.
 *
 * @param {string[]} likely
 * @param {string[]} classes
 */
export function keysOf(likely, classes) {
  const areDigits = classes.every((name) => /^[0-9]$/.test(name));
  return (classes.length <= 10 ? classes : likely).map((name, k) => [areDigits ? name : String((k + 1) % 10), name]);
}

/**
 * Whether an element takes typed text: then no key decides. A slider and a switch take none.
 *
 * @param {any} on
 */
export function isTyped(on) {
  if (!on.matches) return false;
  if (on.matches("select, textarea, [contenteditable=true], [role=option], [role=listbox]")) return true;
  return on.matches("input") && !["range", "checkbox", "radio", "button", "color"].includes(on.type);
}

/** All keys with what they do; of pairs no class has one. */
export function keyList(choices, arePairs) {
  return [
    ...choices.map(({ key, text }) => [key, text]),
    ...(arePairs ? [] : [["0 – 9", _("Relabel as the class of this key")]]),
    ["← →", _("Previous and next sample")],
    ["U", _("Undo")],
    ["G", _("Switch between a grid of 30 and single samples")],
    ["A", _("Grid: select all undecided, or none")],
    ["⇧ ← →", _("Grid: select a range (or click with Shift or Ctrl)")],
    ["?", _("All keys")],
  ];
}
