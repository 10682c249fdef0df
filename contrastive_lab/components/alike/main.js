// Two samples side by side, each patch or word tinted by its part in their similarity. One that is pointed at
// lights its partners in the other sample, in the browser alone.

import { largestAt, partsOf, placeAt } from "./parts.js";
import { BLUE, ORANGE, rgb, sizeSquare, theme } from "../shared/canvas.js";
import { el, isTouched, number, say } from "../shared/dom.js";
import { _ } from "../shared/locale.js";
import { inApp, partOf } from "../shared/part.js";

const TINT = 0.8; // alpha of the largest part

export const mount = partOf("_alike", build, show, draw);

export default inApp(mount);

function build() {
  /** @type {any} */
  const view = { said: el("p", { "aria-live": "polite" }), grid: el("div", { class: "grid" }) };
  view.root = el("div", { class: "alike" }, view.grid, view.said);
  view.root.onpointerleave = (e) => e.pointerType !== "touch" && point(view, null);
  view.root.onkeydown = (e) => e.key === "Escape" && point(view, null);
  return view;
}

function show(view, { meta, patches, thumbnails }) {
  const counts = meta.sides.map(({ shape }) => shape.reduce((a, b) => a * b));
  Object.assign(view, { meta, parts: { patches: new Float32Array(patches.slice().buffer), counts }, spot: null });
  view.total = view.parts.patches.reduce((a, b) => a + b, 0);
  let images = 0;
  view.sides = meta.sides.map((side, k) => (side.words.length ? wordsOf(view, k) : pictureOf(view, k, images++)));
  view.grid.replaceChildren(...view.sides.flatMap((side) => side.nodes));
  draw(view);
  if (!images) return;
  createImageBitmap(new Blob([thumbnails])).then((sheet) => {
    view.sheet = sheet;
    draw(view);
  });
}

/** A picture as it is, and with its parts; both can be pointed at, the second by keys too. */
function pictureOf(view, side, index) {
  const { name, shape } = view.meta.sides[side];
  const canvases = ["plain", "map"].map((kind) => {
    const hint = { role: "img", "aria-label": kind === "map" ? _("{name}, part of each patch", { name }) : name };
    const c = el("canvas", { class: `${kind} of-${side}`, ...hint });
    c.onpointermove = c.onpointerdown = (e) => {
      const place = placeAt(e.offsetX / c.clientWidth, e.offsetY / c.clientHeight, shape);
      point(view, { side, place });
    };
    return c;
  });
  canvases[1].tabIndex = 0;
  canvases[1].onkeydown = (e) => {
    const step = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[e.key],
      [rows, columns] = shape,
      isOn = view.spot?.side === side,
      place = isOn ? view.spot.place : largestAt(partsOf(view.parts, side, null));
    if (!step) return;
    e.preventDefault();
    const [x, y] = isOn ? step : [0, 0];
    const to = placeAt(((place % columns) + x + 0.5) / columns, (Math.floor(place / columns) + y + 0.5) / rows, shape);
    point(view, { side, place: to });
  };
  return { nodes: canvases, canvases, index };
}

/** The words of a text as buttons. */
function wordsOf(view, side) {
  const buttons = view.meta.sides[side].words.map((word, place) => {
    const b = el("button", { type: "button" }, word);
    b.onpointerenter = b.onclick = b.onfocus = () => point(view, { side, place });
    return b;
  });
  return { nodes: [el("div", { class: `words of-${side}`, role: "group" }, ...buttons)], buttons };
}

function point(view, spot) {
  if (spot?.side === view.spot?.side && spot?.place === view.spot?.place) return;
  view.spot = spot;
  draw(view);
}

function draw(view) {
  if (!view.sides) return;
  const { spot, parts } = view;
  view.sides.forEach((side, k) => {
    const found = partsOf(parts, k, spot),
      most = found.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-12),
      tint = (part) => rgb(part < 0 ? ORANGE : BLUE, (TINT * Math.abs(part)) / most),
      marked = spot && (spot.side === k ? spot.place : largestAt(found));
    if (side.buttons) {
      side.buttons.forEach((b, place) => {
        b.style.background = tint(found[place]);
        b.setAttribute("aria-pressed", String(place === marked));
      });
    } else side.canvases.forEach((c, n) => drawPicture(view, c, k, n ? { found, tint } : null, marked));
  });
  say(view.said, sentence(view));
}

/** The picture in its colors; or in gray, with a tint on each patch. */
function drawPicture(view, c, k, heat, marked) {
  const [g, size, dpr] = sizeSquare(c),
    { tile, across } = view.meta.thumbnails,
    { index } = view.sides[k],
    [rows, columns] = view.meta.sides[k].shape;
  /** @type {(place: number) => [number, number, number, number]} */
  const box = (place) => [
    (Math.floor(place % columns) * size) / columns,
    (Math.floor(place / columns) * size) / rows,
    size / columns,
    size / rows,
  ];
  g.imageSmoothingEnabled = tile > 32;
  if (view.sheet)
    g.drawImage(view.sheet, (index % across) * tile, Math.floor(index / across) * tile, tile, tile, 0, 0, size, size);
  if (heat) {
    g.globalCompositeOperation = "saturation";
    g.fillStyle = "#808080";
    g.fillRect(0, 0, size, size);
    g.globalCompositeOperation = "source-over";
    heat.found.forEach((part, place) => {
      g.fillStyle = heat.tint(part);
      g.fillRect(...box(place));
    });
  }
  if (marked === null) return;
  const [x, y, w, h] = box(marked),
    { ink, paper } = theme(view.root);
  [paper, ink].forEach((color, n) => {
    g.strokeStyle = color;
    g.lineWidth = (4 - 2 * n) * dpr;
    g.strokeRect(x + dpr, y + dpr, w - 2 * dpr, h - 2 * dpr);
  });
}

function sentence(view) {
  const { spot, parts, total } = view;
  if (!spot) {
    return isTouched()
      ? _("Blue adds to the similarity, orange lowers it. Tap a patch or word to see its partners.")
      : _("Blue adds to the similarity, orange lowers it. Point at a patch or word to see its partners.");
  }
  const of = partsOf(parts, spot.side, null)[spot.place],
    partners = partsOf(parts, 1 - spot.side, spot),
    best = largestAt(partners);
  return _("{place}: {part} of {total}. Strongest partner: {other} ({most}).", {
    place: nameOf(view, spot.side, spot.place),
    part: number(of),
    total: number(total),
    other: nameOf(view, 1 - spot.side, best),
    most: number(partners[best]),
  });
}

function nameOf(view, side, place) {
  const { words, shape } = view.meta.sides[side];
  if (words.length) return _("the word “{word}”", { word: words[place] });
  const at = { row: 1 + Math.floor(place / shape[1]), column: 1 + (place % shape[1]) };
  return _("row {row}, column {column}", at);
}
