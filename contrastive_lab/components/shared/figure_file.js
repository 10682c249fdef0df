// A drawing of SVG elements as a file: SVG, or PDF made of it.

import { offer } from "./download.js";
import { pdfOf } from "./pdf.js";

export const NS = "http://www.w3.org/2000/svg";
export const FAMILIES = {
  Helvetica: "Helvetica, Arial, sans-serif",
  Times: "'Times New Roman', Times, serif",
  Courier: "'Courier New', Courier, monospace",
};
export const pixelsOf = (mm) => (mm * 96) / 25.4;

/**
 * An SVG element with attributes and children.
 *
 * @param {string} name
 * @param {Record<string, unknown>} [attributes]
 * @param {...(Element | string)} children
 */
export function shape(name, attributes = {}, ...children) {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  node.append(...children);
  return node;
}

/**
 * A white sheet of some pixels with these elements on it.
 *
 * @param {number} width
 * @param {number} height
 * @param {Element[]} elements
 */
export function sheet(width, height, elements) {
  const size = { width: `${(width * 25.4) / 96}mm`, height: `${(height * 25.4) / 96}mm` };
  const paper = shape("rect", { width, height, style: "fill: rgb(255, 255, 255)" });
  return shape("svg", { xmlns: NS, ...size, viewBox: `0 0 ${width} ${height}` }, paper, ...elements);
}

/**
 * Offer a sheet as a file.
 *
 * @param {any} svg
 * @param {string} name without an ending
 * @param {"svg" | "pdf"} ending
 */
export const offerFigure = async (svg, name, ending) => {
  const { width, height } = svg.viewBox.baseVal;
  if (ending === "svg")
    return offer(new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" }), `${name}.svg`);
  const place = document.createElement("div"); // where text has a size
  place.style.cssText = `position: fixed; left: -10000px; top: 0; width: ${width}px; height: ${height}px`;
  place.append(svg);
  document.body.append(place);
  try {
    await Promise.all([...svg.querySelectorAll("image")].map(bringPicture));
    offer(await pdfOf(svg, width, height), `${name}.pdf`);
  } finally {
    place.remove();
  }
};

/** The picture behind an image element, on a canvas that a PDF is made of. */
async function bringPicture(node) {
  const picture = new Image();
  picture.src = node.getAttribute("href") ?? node.getAttributeNS("http://www.w3.org/1999/xlink", "href");
  await picture.decode();
  const canvas = document.createElement("canvas");
  canvas.width = picture.naturalWidth;
  canvas.height = picture.naturalHeight;
  canvas.getContext("2d").drawImage(picture, 0, 0);
  node._picture = canvas;
}
