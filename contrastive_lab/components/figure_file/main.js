// Buttons that save a figure as SVG or PDF: the Plotly figure of the same dialog as it is drawn or, without a name, the
// map on the stage, which hears of them by an event of the window.

import { fileOptions, SAVE } from "../scatter/figure.js";
import { el } from "../shared/dom.js";
import { endings, offerFigure, shape, sheet } from "../shared/figure_file.js";
import { unpack } from "../shared/transport.js";

const SOON = 250; // milliseconds until the map is told again that is still on its way

/** @param {PartArguments} component */
export default function ({ parentElement, data }) {
  const { meta } = unpack(data),
    host = /** @type {any} */ (parentElement.getRootNode()).host ?? parentElement;
  const save = (ending) => {
    const plot = host.closest("[role=dialog]").querySelector(".js-plotly-plot");
    offerFigure(sheetOf(plot), meta.name, ending);
  };
  const ofPlot = () =>
    endings().map((ending) => el("button", { type: "button", onclick: () => save(ending) }, ending.toUpperCase()));
  const tell = (detail) => {
    const isLost = window.dispatchEvent(new CustomEvent(SAVE, { detail, cancelable: true }));
    if (isLost && parentElement.isConnected) setTimeout(tell, SOON, detail);
  };
  const tools = meta.name ? el("div", { class: "tools" }, ...ofPlot()) : fileOptions(tell, ["png"]),
    before = parentElement.querySelector(".map");
  if (before?.textContent === tools.textContent) return; // the page was drawn anew: what was typed stays
  before?.remove();
  parentElement.append(el("div", { class: "map" }, tools));
}

/** Plotly's layers, one above the other, without what follows the pointer. */
function sheetOf(plot) {
  const layers = [...plot.querySelectorAll(".main-svg")],
    { width, height } = layers[0].getBoundingClientRect();
  const copies = layers.map((layer) => shape("g", {}, ...[...layer.children].map((part) => part.cloneNode(true))));
  const svg = sheet(width, height, copies);
  for (const part of svg.querySelectorAll(".hoverlayer, .drag, .cursor-pointer")) part.remove();
  return svg;
}
