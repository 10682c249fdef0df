// Canvases of the browser parts: colors, sizes, lines and marks.

/** Of categories: the same as in scatter/__init__.py, from where points get them. */
export const PALETTE = ["#3B7DD8", "#E8833A", "#14A778", "#D993BD", "#EFC933", "#593DAB", "#0A6565", "#933A2B"];

export const BLUE = fromHex(PALETTE[0]);
export const ORANGE = fromHex(PALETTE[1]);
export const GREEN = fromHex(PALETTE[2]);
export const PINK = fromHex(PALETTE[3]);
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

/** @param {string} text */
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
    accent: style.getPropertyValue("--st-primary-color") || "#18222d",
  };
}

const FONT = "12px 'Source Sans', 'Source Sans Pro', sans-serif";

/** Widths and heights in CSS pixels, as they were last laid out. @type {WeakMap<Element, [number, number]>} */
const SIZES = new WeakMap();

/**
 * Call back when an element or a canvas in it has another size. Their sizes are known from then on: to ask for one in a
 * frame that has changed texts would lay out the page once more.
 *
 * @param {HTMLElement} root
 * @param {() => void} redraw
 */
export function watchSizes(root, redraw) {
  const observer = new ResizeObserver((entries) => {
    for (const { target } of entries) SIZES.set(target, [target.clientWidth, target.clientHeight]);
    redraw();
  });
  for (const node of [root, ...root.querySelectorAll("canvas")]) {
    SIZES.set(node, [0, 0]);
    observer.observe(node);
  }
  return observer;
}

/**
 * Measure an element that was moved to another place when it is drawn next.
 *
 * @param {Element} node
 */
export function forgetSize(node) {
  if (SIZES.has(node)) SIZES.set(node, [0, 0]);
}

/**
 * Width and height of an element in CSS pixels. What was hidden until now, or is not watched, is measured.
 *
 * @param {Element} node
 * @returns {[number, number]}
 */
export function sizeOf(node) {
  const known = SIZES.get(node);
  if (known?.[0]) return known;
  /** @type {[number, number]} */
  const now = [node.clientWidth, node.clientHeight];
  if (known) SIZES.set(node, now);
  return now;
}

/**
 * A canvas at the screen's resolution, cleared: context, width and height in CSS pixels.
 *
 * @param {HTMLCanvasElement} c
 * @returns {[CanvasRenderingContext2D, number, number]}
 */
export function sizeCanvas(c) {
  const dpr = devicePixelRatio || 1,
    [width, height] = sizeOf(c);
  const w = Math.round(width * dpr),
    h = Math.round(height * dpr);
  if (c.width !== w || c.height !== h) {
    c.width = w;
    c.height = h;
  }
  const g = c.getContext("2d");
  g.setTransform(dpr, 0, 0, dpr, 0, 0);
  g.clearRect(0, 0, width, height);
  if (!g.font.startsWith("12px")) g.font = FONT; // not at each frame: it would lay out the page
  return [g, width, height];
}

/**
 * A square canvas at the screen's resolution, cleared: context, and its side in device pixels.
 *
 * @param {HTMLCanvasElement} c
 * @returns {[CanvasRenderingContext2D, number, number]} and the device's pixels in one of CSS
 */
export function sizeSquare(c) {
  const dpr = devicePixelRatio || 1,
    size = Math.round(sizeOf(c)[0] * dpr),
    g = c.getContext("2d");
  if (c.width !== size) c.width = c.height = size;
  g.clearRect(0, 0, size, size);
  return [g, size, dpr];
}

/** A picture of so many device pixels, painted again only if something that it depends on has changed. */
export function paintedOnce(cache, name, dependencies, width, height, paint) {
  const kept = (cache.painted ??= {}),
    key = dependencies.join(" ");
  if (kept[name]?.key !== key) {
    kept[name] = { key, canvas: new OffscreenCanvas(width, height) };
    paint(kept[name].canvas.getContext("2d"));
  }
  return kept[name].canvas;
}

/**
 * A matrix of one pixel a cell, stretched over a square with a thin frame.
 *
 * @param {CanvasRenderingContext2D} g
 * @param {any} buffer
 * @param {{ from: number, side: number, cells: number, ink: string }} place
 */
export function drawCells(g, buffer, { from, side, cells, ink }) {
  g.imageSmoothingEnabled = cells > 1.2 * side; // or single cells of a large matrix would be left out
  g.drawImage(buffer, from, from, side, side);
  g.globalAlpha = 0.25;
  g.strokeStyle = ink;
  g.strokeRect(from + 0.5, from + 0.5, side - 1, side - 1);
  g.globalAlpha = 1;
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

const GAP = 28, // pixels between two plots
  NARROW = 480; // pixels below which plots stand below each other

/**
 * Two plots in one canvas, side by side or, where it is narrow, below each other: the place of each.
 *
 * @param {number} width
 * @param {number} height
 */
export function halves(width, height) {
  if (width < NARROW) {
    const high = (height - GAP / 2) / 2;
    return [0, height - high].map((y) => ({ x: 0, y, width, height: high }));
  }
  const wide = (width - GAP) / 2;
  return [0, width - wide].map((x) => ({ x, y: 0, width: wide, height }));
}

/**
 * Draw in a part of a canvas as if it were the whole.
 *
 * @param {CanvasRenderingContext2D} g
 * @param {{ x: number, y: number, width: number, height: number }} box
 * @param {(width: number, height: number) => void} draw
 */
export function within(g, box, draw) {
  g.save();
  g.translate(box.x, box.y);
  draw(box.width, box.height);
  g.restore();
}

/**
 * Text centered at x, kept inside the canvas.
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
