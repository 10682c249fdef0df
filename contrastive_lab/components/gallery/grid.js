// A grid of pictures cut from one sheet; as many as fit on a few screens, more on demand.

import { el } from "../shared/dom.js";
import { _ } from "../shared/locale.js";

const SHOWN = 120; // pictures that are drawn at once

/**
 * One picture of a sheet as a small canvas.
 *
 * @param {ImageBitmap} sheet
 * @param {any} parts
 * @param {number} i
 * @param {number} size
 * @param {string} title
 */
export function pictureOf(sheet, { tile, across }, i, size, title) {
  const c = el("canvas", { width: size, height: size, title }),
    g = c.getContext("2d");
  g.imageSmoothingEnabled = false;
  g.drawImage(sheet, (i % across) * tile, Math.floor(i / across) * tile, tile, tile, 0, 0, size, size);
  return c;
}

/**
 * Fill `box` with pictures of `rows`: `make(i)`, `name(i)`, and what `point` and `click` do.
 *
 * @param {any} box
 * @param {number[]} rows
 * @param {any} parts
 * @param {number} [shown]
 */
export function drawGallery(box, rows, { make, name, point, click, caption, isOn }, shown = SHOWN) {
  const made = rows.slice(0, shown).map((i) => {
    const b = el("button", { type: "button", "aria-label": name(i) }, make(i));
    const parts = (caption?.(i) ?? "").split(/(?<=[/_])/); // of a path, which breaks there first
    if (parts[0]) b.append(el("span", {}, ...parts.flatMap((part) => [part, el("wbr", {})])));
    if (isOn) b.setAttribute("aria-pressed", String(isOn(i)));
    b.onpointerenter = b.onfocus = () => point && point(i);
    b.onclick = () => click && click(i);
    return b;
  });
  if (rows.length > shown) {
    const more = el("button", { type: "button", class: "more" }, _("{count} more", { count: rows.length - shown }));
    more.onclick = () => drawGallery(box, rows, { make, name, point, click, caption, isOn }, shown * 4);
    made.push(more);
  }
  box.className = "gallery";
  box.replaceChildren(...made);
}
