// Buttons that save the Plotly figure of the same dialog as SVG or PDF, as it is drawn.

import { el } from "../shared/dom.js";
import { offerFigure, shape, sheet } from "../shared/figure_file.js";
import { unpack } from "../shared/transport.js";

/**
 * @param {PartArguments} component
 */
export default function ({ parentElement, data }) {
  const { meta } = unpack(data),
    host = /** @type {any} */ (parentElement.getRootNode()).host ?? parentElement;
  const save = (ending) => {
    const plot = host.closest("[role=dialog]").querySelector(".js-plotly-plot");
    offerFigure(sheetOf(plot), meta.name, ending);
  };
  const buttons = ["svg", "pdf"].map((ending) =>
    el("button", { type: "button", onclick: () => save(ending) }, ending.toUpperCase()),
  );
  parentElement.querySelector(".map")?.remove();
  parentElement.append(el("div", { class: "map" }, el("div", { class: "tools" }, ...buttons)));
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
