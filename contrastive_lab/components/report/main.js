// The parts of a report, mounted where the file has them.

import { mount as mountLossView } from "../loss_view/main.js";
import { mount as mountScatter } from "../scatter/main.js";
import { whenColorsChange } from "../shared/surroundings.js";

const PARTS = { loss_view: mountLossView, scatter: mountScatter };

/** @param {Element | null} holder */
function bytesIn(holder) {
  return holder ? Uint8Array.from(atob(holder.textContent.trim()), (c) => c.charCodeAt(0)) : new Uint8Array(0);
}

/** A part's data; its pictures, which are the last of them, stand once in the file. */
function dataOf(place) {
  const own = bytesIn(place.querySelector("script")),
    sheet = bytesIn(document.getElementById(place.dataset.sheet));
  const whole = new Uint8Array(own.length + sheet.length);
  whole.set(own);
  whole.set(sheet, own.length);
  return whole;
}

const stands = [...document.querySelectorAll("[data-part]")].map((place) => {
  const data = dataOf(place),
    root = document.createElement("div");
  place.append(root);
  const draw = () => PARTS[/** @type {HTMLElement} */ (place).dataset.part](root, data, { report: () => {} });
  draw();
  return { root, draw };
});

/** On paper all is dark on white, whatever the screen shows. */
function onPaper(printed) {
  document.documentElement.classList.toggle("printed", printed);
  for (const { root } of stands) {
    const part = /** @type {any} */ (root)._lab || /** @type {any} */ (root)._map;
    part.redraw();
  }
}
addEventListener("beforeprint", () => onPaper(true));
addEventListener("afterprint", () => onPaper(false));
whenColorsChange(document.body, () => stands.forEach(({ draw }) => draw()));

export default PARTS;
