// The map as it is seen, as SVG or PDF of a chosen width and font, with its legend inside.

import { partnerPaths } from "./partners.js";
import { PALE, pointSize, shapeOf } from "./points.js";
import { fileName, offerPng } from "./save.js";
import { view } from "./view.js";
import { el } from "../shared/dom.js";
import { endings, FAMILIES, offerFigure, pixelsOf, shape, sheet } from "../shared/figure_file.js";
import { _ } from "../shared/locale.js";

const LAYERS = 16; // of points, in each a path for every category: none covers the others

export const SAVE = "contrastive-lab:save-map"; // an event of the window, for the map on the stage

/**
 * The options of a figure, and a button for each kind of file.
 *
 * @param {(wanted: any) => void} save
 * @param {string[]} [further] kinds of files besides SVG and PDF
 */
export function fileOptions(save, further = []) {
  const field = (label, node) => el("label", {}, `${label} `, node),
    width = el("input", { type: "number", min: 40, max: 400, value: 180 }),
    size = el("input", { type: "number", min: 4, max: 24, value: 8 }),
    font = el("select", {}, ...Object.keys(FAMILIES).map((name) => el("option", {}, name)));
  const within = (node) => Math.min(Number(node.max), Math.max(Number(node.min), Number(node.value) || 0));
  const button = (ending) =>
    el(
      "button",
      {
        type: "button",
        onclick: () => save({ ending, width: within(width), family: FAMILIES[font.value], size: within(size) }),
      },
      ending.toUpperCase(),
    );
  return el(
    "div",
    { class: "tools" },
    ...further.map(button),
    field(_("Width, mm"), width),
    field(_("Font"), font),
    field(_("Size, pt"), size),
    ...endings().map(button),
  );
}

/**
 * Offer the map as it is seen as a file.
 *
 * @param {ScatterState} map
 * @param {any} wanted as `fileOptions` says it
 */
export function saveMap(map, { ending, width, family, size }) {
  const figure = figureOf(map, pixelsOf(width), family, (size * 96) / 72);
  if (ending === "png") offerPng(figure, fileName(map));
  else offerFigure(figure, fileName(map), ending);
}

/**
 * @param {ScatterState} map
 * @param {number} width pixels, as all lengths
 * @param {string} family
 * @param {number} size of the font
 */
function figureOf(map, width, family, size) {
  const v = view(map),
    k = width / map.stage.clientWidth,
    high = map.stage.clientHeight * k,
    text = (content, x, y, more = "") =>
      shape(
        "text",
        { x, y, style: `font-family: ${family}; font-size: ${size}px; fill: rgb(0, 0, 0); ${more}` },
        content,
      );
  const place = (x, y) => [(x * v.scale + v.x) * k, (v.y - y * v.scale) * k],
    names = (map.meta.panels?.names ?? []).map((name, q) => {
      const [x, y] = place(...map.meta.panels.at[q]);
      return text(name, x, Math.max(size, y), "font-weight: 600; text-anchor: middle");
    });
  const [key, below] = legendOf(map, width, high, family, size, text);
  const points = map.isDense
    ? [shape("image", { width, height: high, href: map.canvas.toDataURL() })]
    : pointsOf(map, place, k, [width, high]);
  const lines = partnerPaths(map, place).map(({ d, alpha }) =>
    shape("path", { d, style: `fill: none; stroke: rgb(0, 0, 0); stroke-width: 0.5; stroke-opacity: ${alpha}` }),
  );
  return sheet(width, high + below, [...lines, ...points, ...names, ...key]);
}

/** Paths of the points in view: what is not selected first, pale. */
function pointsOf(map, place, k, [width, high]) {
  const r = Math.max(1, (pointSize(map) * k) / 2),
    some = map.picked.length > 0,
    paths = new Map();
  map.mixed.forEach((i, turn) => {
    const c = map.color[i % map.rows],
      [x, y] = place(map.xy[2 * i], map.xy[2 * i + 1]);
    if (map.hidden.has(c) || x < -r || y < -r || x > width + r || y > high + r) return;
    const isLit = !some || map.lit[i],
      layer = isLit ? 1 + Math.floor((LAYERS * turn) / map.n) : 0,
      id = [layer, c].join();
    if (!paths.has(id)) paths.set(id, { layer, fill: map.meta.palette[c], isLit, d: "" });
    paths.get(id).d += shapeOf(c).path(x, y, r);
  });
  return [...paths.values()]
    .sort((a, b) => a.layer - b.layer)
    .map(({ fill, isLit, d }) => shape("path", { d, style: `fill: ${fill}; fill-opacity: ${isLit ? 0.9 : PALE}` }));
}

/** The legend's elements, line by line below the maps, and its height. */
function legendOf(map, width, top, family, size, text) {
  const { names, palette } = map.meta,
    g = document.createElement("canvas").getContext("2d"),
    line = 1.5 * size;
  g.font = `${size}px ${family}`;
  let [x, y] = [size, top + line];
  const entries = [];
  names.forEach((name, k) => {
    if (map.hidden.has(k) || names.length < 2) return;
    const wide = g.measureText(name).width + 2 * size;
    if (x > size && x + wide > width) [x, y] = [size, y + line];
    const d = shapeOf(k).path(x, y - 0.35 * size, 0.4 * size);
    entries.push(shape("path", { d, style: `fill: ${palette[k]}` }), text(name, x + 0.7 * size, y));
    x += wide;
  });
  return [entries, entries.length ? y - top + size : 0];
}
