// What the browser parts share: elements, canvases, downloads. Labels become text, never HTML.

export const BLUE = [59, 125, 216],
  ORANGE = [232, 131, 58],
  GREEN = [47, 163, 124],
  GRAY = [130, 140, 150];

export function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k.startsWith("on")) node[k] = v;
    else node.setAttribute(k, v);
  }
  node.append(...children);
  return node;
}

/** A row of buttons of which one is pressed; `then(key)` hears of a change. */
export function choices(names, chosen, then) {
  const all = Object.entries(names).map(([key, text]) =>
    el(
      "button",
      {
        type: "button",
        "data-key": key,
        "aria-pressed": String(key === chosen),
        onclick: () => {
          for (const b of all) b.setAttribute("aria-pressed", String(b.dataset.key === key));
          then(key);
        },
      },
      text,
    ),
  );
  return all;
}

/** A canvas at the screen's resolution, cleared: context, width and height in CSS pixels. */
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
  g.font = "12px 'Source Sans', 'Source Sans Pro', sans-serif";
  return [g, width, height];
}

/** Set a text only where it differs: what is set again has to be laid out again. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function rgb(color, alpha = 1) {
  return `rgb(${color.join(" ")} / ${alpha})`;
}

/** A color [r, g, b] and its alpha as one number of an ImageData's Uint32Array. */
export function packed(color, alpha) {
  const a = Math.round(255 * Math.min(1, Math.max(0, alpha)));
  return ((a << 24) | (color[2] << 16) | (color[1] << 8) | color[0]) >>> 0;
}

export function fromHex(text) {
  return [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16));
}

/** Colors of the theme, which come as CSS variables. */
export function theme(root) {
  const style = getComputedStyle(root);
  return {
    ink: style.color,
    paper: style.getPropertyValue("--st-background-color") || "#fff",
    accent: style.getPropertyValue("--st-primary-color") || "#2f6db5",
  };
}

export function number(x) {
  const size = Math.abs(x);
  return size >= 1000
    ? x.toFixed(0)
    : size >= 100
      ? x.toFixed(1)
      : size >= 0.0995 || x === 0
        ? x.toFixed(3)
        : x.toPrecision(2);
}

export function line(g, points, color, width = 2) {
  g.strokeStyle = color;
  g.lineWidth = width;
  g.beginPath();
  points.forEach(([x, y], k) => (k ? g.lineTo(x, y) : g.moveTo(x, y)));
  g.stroke();
}

function offer(blob, name) {
  const a = el("a", { href: URL.createObjectURL(blob), download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

/** Canvases as one picture: a list stands side by side, lists of a list below each other; a line
 *  of words in `ink` above them says what is seen. */
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
  g.font = `${13 * dpr}px 'Source Sans', 'Source Sans Pro', sans-serif`;
  g.fillText(words, gap, gap + 13 * dpr, c.width - 2 * gap);
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
  const text = (/^[=+\-@\t\r]/.test(value) ? "'" : "") + value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function offerCsv(rows, name) {
  const text = rows.map((row) => row.map(csvCell).join()).join("\n");
  offer(new Blob([text], { type: "text/csv" }), name);
}
