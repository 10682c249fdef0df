// Elements, words and numbers of the browser parts. Labels become text, never HTML.

import { _ } from "./locale.js";

/**
 * @param {string} tag
 * @param {Record<string, any>} attributes
 * @param {...any} children
 * @returns {any}
 */
export function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k.startsWith("on")) node[k] = v;
    else node.setAttribute(k, v);
  }
  node.append(...children);
  return node;
}

/** Whether fingers point here: hints name no keys then. */
export const isTouched = () => globalThis.matchMedia?.("(pointer: coarse)").matches ?? false;

/**
 * Press one of a row of buttons.
 *
 * @param {Iterable<any>} buttons
 * @param {string} chosen
 */
export function press(buttons, chosen) {
  for (const b of buttons) b.setAttribute("aria-pressed", String(b.dataset.key === chosen));
}

/**
 * A row of buttons of which one is pressed, their names in the session's language; `then(key)` hears of a change.
 *
 * @param {Record<string, string>} names
 * @param {string} chosen
 * @param {(value: any) => void} then
 */
export function choices(names, chosen, then) {
  const all = Object.entries(names).map(([key, text]) =>
    el(
      "button",
      {
        type: "button",
        "data-key": key,
        "aria-pressed": String(key === chosen),
        onclick: () => {
          press(all, key);
          then(key);
        },
      },
      _(text),
    ),
  );
  return all;
}

/**
 * Set a text only where it differs: what is set again has to be laid out again.
 *
 * @param {Element} node
 * @param {string} text
 */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * A share in per cent. All is said only of all: what is rounded up to it is not.
 *
 * @param {number} x from 0 to 1
 */
export function percent(x) {
  return x >= 1
    ? "100 %"
    : x > 0.99
      ? _("over 99 %")
      : x > 0 && x < 0.01
        ? _("under 1 %")
        : `${(100 * x).toFixed(0)} %`;
}

/**
 * A number with three significant digits, or two where it is small.
 *
 * @param {number} x
 */
export function number(x) {
  const size = Math.abs(x);
  if (size > 0 && size < 0.0995) return x.toPrecision(2);
  return x.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
}
