// The colors of the page around a part, as the variables that its styles and canvases read.

const LIGHT = [255, 255, 255],
  DARK = [30, 30, 30];

/**
 * @param {HTMLElement} element
 * @returns {Record<string, string>}
 */
export function colorsOf(element) {
  const style = getComputedStyle(element),
    ink = parse(style.color) || [0, 0, 0, 1];
  const paper = paperOf(element) || (brightness(ink) > 0.5 ? DARK : LIGHT),
    dark = brightness(paper) < 0.5;
  const readable = contrast(ink, paper) >= 4.5 ? ink : dark ? [238, 238, 238] : [31, 35, 40];
  return {
    "--st-font": style.fontFamily,
    "--st-text-color": css(readable),
    "--st-background-color": css(paper),
    "--st-secondary-background-color": css(mix(readable, paper, 0.06)),
    "--st-border-color": css(mix(readable, paper, 0.25)),
    "--st-primary-color": dark ? "rgb(227, 232, 237)" : "rgb(24, 34, 45)",
  };
}

/**
 * Calls back when the page's theme may have changed; returns what ends it.
 *
 * @param {HTMLElement} element
 * @param {() => void} then
 */
export function whenColorsChange(element, then) {
  let last = JSON.stringify(colorsOf(element)),
    later;
  const soon = () => {
    clearTimeout(later);
    later = setTimeout(look, 150); // a theme's own style sheet may still be on its way
  };
  const look = () => {
    const now = element.isConnected ? JSON.stringify(colorsOf(element)) : last;
    if (now === last) return;
    if (!element.clientWidth) return soon(); // hidden while the theme changes: a canvas has no size
    last = now;
    // JupyterLab hides its shell for a moment while a theme changes, and what is drawn then has no size: once more.
    for (const wait of [0, 800]) setTimeout(() => element.isConnected && then(), wait);
  };
  const observer = new MutationObserver(soon);
  for (const node of [document.documentElement, document.body]) observer.observe(node, { attributes: true });
  const system = matchMedia("(prefers-color-scheme: dark)"),
    attached = new ResizeObserver(look); // its place in the page is known only once it stands there
  system.addEventListener("change", look);
  attached.observe(element);
  return () => {
    clearTimeout(later);
    observer.disconnect();
    attached.disconnect();
    system.removeEventListener("change", look);
  };
}

/** The first background that is not seen through, from the element outwards. */
function paperOf(element) {
  for (let at = element; at; at = at.parentElement || /** @type {any} */ (at.getRootNode()).host) {
    const color = parse(getComputedStyle(at).backgroundColor);
    if (color && color[3] > 0.5) return color;
  }
  return null;
}

/** Any color that CSS knows, as [r, g, b, alpha]: a canvas reads it. */
function parse(text) {
  const canvas = new OffscreenCanvas(1, 1),
    g = canvas.getContext("2d", { willReadFrequently: true });
  g.fillStyle = text;
  g.fillRect(0, 0, 1, 1);
  const [r, green, b, a] = g.getImageData(0, 0, 1, 1).data;
  return [r, green, b, a / 255];
}

/** Relative luminance, as WCAG defines it. */
function luminance(color) {
  const [r, g, b] = color.slice(0, 3).map((v) => {
    const share = v / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function brightness(color) {
  return Math.sqrt(luminance(color));
}

function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

function mix(a, b, share) {
  return [0, 1, 2].map((k) => Math.round(share * a[k] + (1 - share) * b[k]));
}

/** @param {number[]} color */
function css(color) {
  return `rgb(${color.slice(0, 3).join(", ")})`;
}
