// A drawing of SVG elements as a file: SVG, or PDF that the server makes of it (contrastive_lab/figures.py).

import { offer } from "./download.js";

const NS = "http://www.w3.org/2000/svg";
export const FAMILIES = {
  Helvetica: "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif",
  Times: "'Times New Roman', Times, 'Liberation Serif', serif",
  Courier: "'Courier New', Courier, 'Liberation Mono', monospace",
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

/** Text without the characters that XML forbids: a label may come from any file. */
export const withoutControls = (/** @type {string} */ text) =>
  text.replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "");

/** Whether the app's server is there, which makes PDF of SVG; a notebook or a saved page has none. */
export const endings = () => (document.querySelector(".stApp") ? ["svg", "pdf"] : ["svg"]);

/** A sheet as the text of an SVG file. */
export const textOf = (/** @type {any} */ svg) => withoutControls(new XMLSerializer().serializeToString(svg));

/**
 * Offer a sheet as a file.
 *
 * @param {any} svg
 * @param {string} name without an ending
 * @param {string} ending
 */
export const offerFigure = async (svg, name, ending) => {
  const text = textOf(svg);
  if (ending === "svg") return offer(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`);
  const answer = await fetch("figure.pdf", { method: "POST", body: text });
  if (!answer.ok) throw new Error(await answer.text());
  offer(await answer.blob(), `${name}.pdf`);
};
