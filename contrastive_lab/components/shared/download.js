// What a part gives away: pictures of its canvases, and tables as CSV.

import { el } from "./dom.js";

export function offer(blob, name) {
  const a = el("a", { href: URL.createObjectURL(blob), download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

/**
 * Canvases as one picture: a list stands side by side, lists of a list below each other; a line of words in `ink`
 * above them says what is seen.
 *
 * @param {any[]} canvases
 * @param {string} paper
 * @param {string} name
 * @param {string} [words]
 * @param {string} [ink]
 */
export function offerPicture(canvases, paper, name, words = "", ink = "#000") {
  const rows = canvases.map((c) => (Array.isArray(c) ? c : null)),
    lines = rows.includes(null) ? [canvases] : rows;
  const dpr = devicePixelRatio || 1,
    gap = 16 * dpr,
    head = words ? 26 * dpr : 0,
    c = document.createElement("canvas"),
    g = c.getContext("2d");
  const wide = (all) => all.reduce((sum, k) => sum + k.width + gap, gap),
    high = (all) => Math.max(...all.map((k) => k.height));
  c.width = Math.max(...lines.map(wide));
  c.height = lines.reduce((sum, all) => sum + high(all) + gap, gap + head);
  g.fillStyle = paper;
  g.fillRect(0, 0, c.width, c.height);
  g.fillStyle = ink;
  g.font = `${14 * dpr}px 'Source Sans', 'Source Sans Pro', sans-serif`;
  g.fillText(words, gap, gap + 14 * dpr, c.width - 2 * gap);
  let y = gap + head;
  for (const all of lines) {
    let x = gap;
    for (const k of all) {
      if (k.width && k.height) g.drawImage(k, x, y);
      x += k.width + gap;
    }
    y += high(all) + gap;
  }
  c.toBlob((b) => offer(b, name));
}

/** A cell of a CSV file; text that a spreadsheet would run as a formula is quoted. */
function csvCell(value) {
  if (typeof value === "number") return String(value);
  const text = (/^[=+\-@\t\r]/.test(value) && !Number.isFinite(Number(value)) ? "'" : "") + value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * @param {any[][]} rows
 * @param {string} name
 */
export function offerCsv(rows, name) {
  const text = rows.map((row) => row.map(csvCell).join()).join("\n");
  offer(new Blob([text], { type: "text/csv" }), name);
}
