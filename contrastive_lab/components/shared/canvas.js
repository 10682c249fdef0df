// Canvases of the browser parts: colors, sizes, lines and marks.

import { tr } from "./words.js";

export const BLUE = [59, 125, 216];
export const ORANGE = [232, 131, 58];
export const GREEN = [47, 163, 124];
export const GRAY = [130, 140, 150];

/**
 * @param {number[]} color
 * @param {number} [alpha]
 */
export function rgb(color, alpha = 1) {
  return `rgb(${color.join(" ")} / ${alpha})`;
}

/**
 * A color [r, g, b] and its alpha as one number of an ImageData's Uint32Array.
 *
 * @param {number[]} color
 * @param {number} alpha
 */
export function packed(color, alpha) {
  const a = Math.round(255 * Math.min(1, Math.max(0, alpha)));
  return ((a << 24) | (color[2] << 16) | (color[1] << 8) | color[0]) >>> 0;
}

/**
 * @param {string} text
 */
export function fromHex(text) {
  return [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16));
}

/**
 * Colors of the theme, which come as CSS variables.
 *
 * @param {Element} root
 */
export function theme(root) {
  const style = getComputedStyle(root);
  return {
    ink: style.color,
    paper: style.getPropertyValue("--st-background-color") || "#fff",
    accent: style.getPropertyValue("--st-primary-color") || "#2f6db5",
  };
}

/**
 * A canvas at the screen's resolution, cleared: context, width and height in CSS pixels.
 *
 * @param {HTMLCanvasElement} c
 * @returns {[CanvasRenderingContext2D, number, number]}
 */
export function sizeCanvas(c) {
  const dpr = devicePixelRatio || 1,
    width = c.clientWidth,
    height = c.clientHeight;
  const w = Math.round(width * dpr),
    h = Math.round(height * dpr);
  if (c.width !== w || c.height !== h) {
    c.width = w;
    c.height = h;
  }
  const g = c.getContext("2d");
  g.setTransform(dpr, 0, 0, dpr, 0, 0);
  g.clearRect(0, 0, width, height);
  if (!Object.hasOwn(g, "fillText")) {
    g.fillText = (text, ...at) => CanvasRenderingContext2D.prototype.fillText.call(g, tr(text), ...at);
    g.measureText = (text) => CanvasRenderingContext2D.prototype.measureText.call(g, tr(text));
  }
  g.font = "12px 'Source Sans', 'Source Sans Pro', sans-serif";
  return [g, width, height];
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {number[][]} points
 * @param {string} color
 * @param {number} [width]
 */
export function line(g, points, color, width = 2) {
  g.strokeStyle = color;
  g.lineWidth = width;
  g.beginPath();
  points.forEach(([x, y], k) => (k ? g.lineTo(x, y) : g.moveTo(x, y)));
  g.stroke();
}

/**
 * Text centerd at x, kept inside the canvas.
 *
 * @param {CanvasRenderingContext2D} g
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {string} [align]
 */
export function tick(g, text, x, y, width, align = "center") {
  const wide = g.measureText(text).width,
    left = align === "left" ? x : align === "right" ? x - wide : x - wide / 2;
  g.fillText(text, Math.min(width - wide - 2, Math.max(2, left)), y);
}
