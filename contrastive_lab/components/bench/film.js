// The queue below the desk, or a grid of it: each picture, its decision, and how likely its label is wrong.

import { pictureOf } from "../gallery/grid.js";
import { el, say } from "../shared/dom.js";
import { _ } from "../shared/locale.js";

const SIDE = 64; // pixels of a picture
export const PAGE = 30; // pictures of the grid

/** Draw the queue; `badgeOf(item)` is the key that decided so. Pictures are cut again only of another stretch. */
export function drawFilm(view, isGrid, badgeOf, go) {
  const { film, meta, drawn } = view,
    sheet = drawn && drawn.meta === meta ? drawn.sheets[0] : null,
    { chosen } = view.here;
  const inside = film.box.contains(view.root.getRootNode().activeElement);
  if (film.items !== meta.items || film.sheet !== sheet || film.isGrid !== isGrid) {
    const side = isGrid && sheet ? meta.pictures.tile : SIDE;
    const frames = meta.items.map((item, k) => frameOf(sheet, meta, k, side, (event) => go(meta.start + k, event)));
    Object.assign(film, { items: meta.items, sheet, isGrid, frames });
    film.box.replaceChildren(...frames, el("p", { class: "end" }, meta.end));
  }
  const here = Math.max(0, view.at);
  film.frames.forEach((frame, k) => {
    const isHere = meta.start + k === view.at || view.at < 0;
    frame.hidden = isGrid && Math.floor((meta.start + k) / PAGE) !== Math.floor(here / PAGE);
    if (frame.hidden) chosen.delete(meta.items[k].id); // a page is left with its selection
    frame.setAttribute("aria-current", String(isHere));
    if (isGrid) frame.setAttribute("aria-pressed", String(chosen.has(meta.items[k].id)));
    frame.tabIndex = isHere ? 0 : -1;
    say(frame.lastChild, badgeOf(meta.items[k]));
    if (!isHere) return;
    if (!isGrid) film.box.scrollLeft = frame.offsetLeft - (film.box.clientWidth - frame.offsetWidth) / 2;
    else if (frame.offsetTop + frame.offsetHeight > film.box.scrollTop + film.box.clientHeight)
      film.box.scrollTop = frame.offsetTop;
    if (inside) frame.focus({ preventScroll: true });
  });
}

function frameOf(sheet, { items, start, pictures }, k, side, onclick) {
  const { id, text, wrong, given, looksLike } = items[k],
    name = _("{place}. {id}", { place: start + k + 1, id }),
    style = wrong === null ? "" : `width: ${Math.round(100 * wrong)}%`;
  const picture = sheet
    ? pictureOf(sheet, pictures, k, side, "")
    : el("span", { dir: "auto" }, text?.pieces.join("") ?? id);
  const label = el("small", {}, [given, looksLike].filter(Boolean).join(" → "));
  const parts = [picture, el("i", { style }), label, el("kbd", {})];
  return el("button", { type: "button", "aria-label": name, title: id, onclick }, ...parts);
}

/** How many pictures stand in a row of the grid. */
export function strideOf({ film }) {
  const shown = film.frames.filter(({ hidden }) => !hidden);
  return shown.filter(({ offsetTop }) => offsetTop === shown[0].offsetTop).length;
}

/** Select up to a place (`isRange`), one more (`isMore`), or none; in the grid only. */
export function pick(view, place, isRange, isMore) {
  const { chosen } = view.here,
    { items, start } = view.meta,
    id = items[place - start]?.id;
  if (!view.film.isGrid || !(isRange || isMore)) return chosen.clear();
  const [first, last] = [view.at, place].sort((a, b) => a - b);
  if (isRange) for (let k = first; k <= last; k++) chosen.add(items[k - start].id);
  else if (!chosen.delete(id)) {
    if (!chosen.size) chosen.add(items[view.at - start].id);
    chosen.add(id);
  }
}

/** Select what is undecided on the page, or nothing where something is selected. */
export function selectOpen({ here, film, meta }, isOpen) {
  const some = here.chosen.size ? [] : meta.items.filter((item, k) => !film.frames[k].hidden && isOpen(item));
  here.chosen.clear();
  for (const { id } of some) here.chosen.add(id);
}

/** The samples that a decision is on: the selected ones, else the one at hand. */
export function selected({ here, meta }, item) {
  const some = meta.items.filter(({ id }) => here.chosen.has(id));
  return some.length ? some : item ? [item] : [];
}
