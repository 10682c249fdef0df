// A map's file names, and its figure as a picture of pixels.

import { offer } from "../shared/download.js";
import { textOf } from "../shared/figure_file.js";

const FINE = 2; // pixels of the picture for each of the figure

/**
 * What a picture of the map is called, without its ending.
 *
 * @param {ScatterState} map
 */
export function fileName({ meta }) {
  return (meta.file || meta.title.toLowerCase()).replaceAll(/[^\w.-]+/g, "-");
}

/**
 * Offer a sheet (figure_file.js) as PNG.
 *
 * @param {any} svg
 * @param {string} name without an ending
 */
export async function offerPng(svg, name) {
  const picture = new Image();
  picture.src = `data:image/svg+xml,${encodeURIComponent(textOf(svg))}`;
  await picture.decode();
  const canvas = document.createElement("canvas");
  canvas.width = FINE * picture.width;
  canvas.height = FINE * picture.height;
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => offer(blob, `${name}.png`));
}
