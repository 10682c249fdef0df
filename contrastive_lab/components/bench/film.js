// The queue below the desk: the picture of each sample, what was decided on it, and how likely its label is wrong.

import { pictureOf } from "../gallery/grid.js";
import { el, say } from "../shared/dom.js";
import { _ } from "../shared/locale.js";

const SIDE = 64; // pixels of a picture

/** Draw the queue; `badgeOf(item)` is the key that decided so. Pictures are cut again only of another stretch. */
export function drawFilm(view, badgeOf, go) {
  const { film, meta, drawn } = view,
    sheet = drawn && drawn.meta === meta ? drawn.sheets[0] : null;
  const inside = film.box.contains(view.root.getRootNode().activeElement);
  if (film.items !== meta.items || film.sheet !== sheet) {
    const frames = meta.items.map((item, k) => frameOf(sheet, meta, k, () => go(meta.start + k)));
    Object.assign(film, { items: meta.items, sheet, frames });
    film.box.replaceChildren(...frames);
  }
  film.frames.forEach((frame, k) => {
    const isHere = meta.start + k === view.at || view.at < 0;
    frame.setAttribute("aria-current", String(isHere));
    frame.tabIndex = isHere ? 0 : -1;
    say(frame.lastChild, badgeOf(meta.items[k]));
    if (!isHere) return;
    film.box.scrollLeft = frame.offsetLeft - (film.box.clientWidth - frame.offsetWidth) / 2;
    if (inside) frame.focus({ preventScroll: true });
  });
}

function frameOf(sheet, { items, start, pictures }, k, onclick) {
  const { id, text, wrong } = items[k],
    name = _("{place}. {id}", { place: start + k + 1, id }),
    style = wrong === null ? "" : `width: ${Math.round(100 * wrong)}%`;
  const picture = sheet ? pictureOf(sheet, pictures, k, SIDE, "") : el("span", {}, text || id);
  const parts = [picture, el("i", { style }), el("kbd", {})];
  return el("button", { type: "button", "aria-label": name, title: id, onclick }, ...parts);
}
