// Which key means which class, and who else a key belongs to.

import { _ } from "../shared/locale.js";

/**
 * The keys of the likeliest classes: their number in the list, or their own name where each class is one digit.
 *
 * @param {string[]} likely
 * @param {string[]} classes
 */
export function keysOf(likely, classes) {
  return areDigits(classes) ? likely : likely.map((_name, k) => String(k + 1));
}

/**
 * The class that a key chooses; undefined: none.
 *
 * @param {string} key
 * @param {string[]} likely
 * @param {string[]} classes
 */
export function classOf(key, likely, classes) {
  if (!/^[0-9]$/.test(key)) return undefined;
  return areDigits(classes) ? classes.find((name) => name === key) : likely[Number(key) - 1];
}

function areDigits(classes) {
  return classes.every((name) => /^[0-9]$/.test(name));
}

/**
 * Whether an element takes typed text now. A picker that is closed, a slider and a switch take none.
 *
 * @param {any} on
 */
export function isTyped(on) {
  if (!on.matches) return false;
  if (on.matches("textarea, [contenteditable=true], [role=option], [role=listbox]")) return true;
  if (on.matches("select")) return isOpen(on);
  if (!on.matches("input")) return false;
  if (on.matches("[role=combobox]")) return on.getAttribute("aria-expanded") === "true";
  return !["range", "checkbox", "radio", "button", "color"].includes(on.type);
}

function isOpen(select) {
  try {
    return select.matches(":open");
  } catch {
    return true; // an older browser: its letters look for a class, as they always did
  }
}

/** All keys with what they do; of pairs no class has one. */
export function keyList(choices, arePairs) {
  return [
    ...choices.map(({ key, text }) => [key, text]),
    ...(arePairs ? [] : [["1 – 3", _("Relabel as a likely class; classes that are digits have their own key")]]),
    ["← →", _("Previous and next sample")],
    ["U", _("Undo")],
    ["?", _("All keys")],
  ];
}
