// A drawing of SVG elements as a PDF page of vectors, made in the browser. Text stays text in the fonts that every PDF
// reader has; what they lack (Chinese, for example) becomes a picture. Streamlit brings no library for this, and those
// for the browser (jsPDF with svg2pdf, 450 kB) lack Greek letters without a font file.

import { pathOperators, short } from "./svg_path.js";

const FONTS = {
  Helvetica: ["Helvetica", "Helvetica-Bold"],
  Times: ["Times-Roman", "Times-Bold"],
  Courier: ["Courier", "Courier-Bold"],
};
const FONT_NAMES = [...Object.values(FONTS).flat(), "Symbol"],
  GREEK = "ΑΒΧΔΕΦΓΗΙ\u03d1ΚΛΜΝΟΠΘΡΣΤΥ\u03c2ΩΞΨΖ",
  SMALL_GREEK = "αβχδεφγηι\u03d5κλμνοπθρστυ\u03d6ωξψζ",
  SYMBOLS = { "−": 45, "≤": 163, "≥": 179, "→": 174, "←": 172, "∞": 165, "≈": 187, "√": 214, "∑": 229, "≠": 185 },
  WIN_ANSI = { "–": 150, "—": 151, "…": 133, "‘": 145, "’": 146, "“": 147, "”": 148, "•": 149, "€": 128 },
  FINE = 6; // pixels of a picture for each of a text

/** The font and code of a character: [is a symbol, code]; null where no font of every reader has it. */
function codeOf(char) {
  const code = char.charCodeAt(0),
    [large, small] = [GREEK.indexOf(char), SMALL_GREEK.indexOf(char)];
  if (char.length > 1) return null;
  if ((code >= 32 && code < 127) || (code >= 160 && code < 256)) return [false, code];
  if (WIN_ANSI[char]) return [false, WIN_ANSI[char]];
  if (SYMBOLS[char]) return [true, SYMBOLS[char]];
  return large >= 0 ? [true, 65 + large] : small >= 0 ? [true, 97 + small] : null;
}

/**
 * The page.
 *
 * @param {any} svg in the document: the browser has laid out its text
 * @param {number} width in pixels, of 1/96 inch
 * @param {number} height
 */
export const pdfOf = async (svg, width, height) => {
  const page = { out: [`0.75 0 0 -0.75 0 ${short(0.75 * height)} cm`], images: [], alphas: new Map(), root: svg };
  draw(page, svg, 1, []);
  return assemble(page, 0.75 * width, 0.75 * height);
};

const matrixOf = (page, node) => page.root.getScreenCTM().inverse().multiply(node.getScreenCTM()),
  operatorOf = (m) => `${[m.a, m.b, m.c, m.d, m.e, m.f].map((v) => String(Number(v.toFixed(5)))).join(" ")} cm`;

function draw(page, node, alpha, clips) {
  const style = getComputedStyle(node);
  if (style.display === "none" || node.tagName === "defs" || node.tagName === "clipPath") return;
  const shown = alpha * Number(style.opacity),
    clip = /url\("?#([^")]+)"?\)/.exec(style.clipPath)?.[1],
    shape = clip && page.root.querySelector(`[id="${clip}"]`),
    all = shape ? [...clips, clipOperators(page, node, shape)] : clips;
  if (!shown) return;
  if (node.tagName === "text") drawText(page, node, shown, all);
  else if (node.tagName === "image") drawImage(page, node, shown, all);
  else if (node.children.length) for (const child of node.children) draw(page, child, shown, all);
  else if (outlineOf(node) && style.visibility !== "hidden") drawShape(page, node, style, shown, all);
}

/** The outline of a shape in PDF's operators; "" for what is none. */
function outlineOf(node) {
  const [x, y, w, h, r, cx, cy] = ["x", "y", "width", "height", "r", "cx", "cy"].map((k) =>
    Number(node.getAttribute(k)),
  );
  if (node.tagName === "path") return pathOperators(node.getAttribute("d") ?? "");
  if (node.tagName === "rect") return w && h ? `${[x, y, w, h].map(short).join(" ")} re` : "";
  if (node.tagName === "circle")
    return pathOperators(`M${cx - r},${cy}a${r},${r} 0 1,1 ${2 * r},0a${r},${r} 0 1,1 ${-2 * r},0z`);
  if (node.tagName !== "line") return "";
  return pathOperators(
    `M${["x1", "y1"].map((k) => node.getAttribute(k))}L${["x2", "y2"].map((k) => node.getAttribute(k))}`,
  );
}

function clipOperators(page, node, shape) {
  const m = matrixOf(page, node),
    outlines = [...shape.children].map(outlineOf);
  return [operatorOf(m), ...outlines, "W n", operatorOf(m.inverse())].join("\n");
}

/** Operators in the coordinates of a node. */
function within(page, m, clips, operators) {
  page.out.push("q", ...clips, operatorOf(m), ...operators, "Q");
}

/** A color's operator and its alpha; null for none. */
function ink(color, operator) {
  const found = /rgba?\(([^)]+)\)/
    .exec(color)?.[1]
    .split(/[,/\s]+/)
    .map(Number);
  if (!found) return null;
  return {
    paint: `${found
      .slice(0, 3)
      .map((v) => short(v / 255))
      .join(" ")} ${operator}`,
    alpha: found[3] ?? 1,
  };
}

function alphaOf(page, fill, stroke) {
  const key = `${short(fill)} ${short(stroke)}`;
  if (!page.alphas.has(key)) page.alphas.set(key, `G${page.alphas.size}`);
  return `/${page.alphas.get(key)} gs`;
}

function drawShape(page, node, style, alpha, clips) {
  const fill = ink(style.fill, "rg"),
    stroke = parseFloat(style.strokeWidth) ? ink(style.stroke, "RG") : null,
    fills = fill && fill.alpha * Number(style.fillOpacity) > 0,
    strokes = stroke && stroke.alpha * Number(style.strokeOpacity) > 0;
  if (!fills && !strokes) return;
  const [a, b] = [
    fills ? fill.alpha * Number(style.fillOpacity) : 1,
    strokes ? stroke.alpha * Number(style.strokeOpacity) : 1,
  ];
  const dashes =
    style.strokeDasharray === "none"
      ? ""
      : style.strokeDasharray
          .split(/[,\s]+/)
          .map(parseFloat)
          .join(" ");
  within(page, matrixOf(page, node), clips, [
    alphaOf(page, a * alpha, b * alpha),
    fills ? fill.paint : "",
    strokes ? `${stroke.paint} ${short(parseFloat(style.strokeWidth))} w [${dashes}] 0 d` : "",
    outlineOf(node),
    fills && strokes ? "B" : fills ? "f" : "S",
  ]);
}

/** Each text below a node: runs of characters of one font, where the browser has them. */
function drawText(page, node, alpha, clips) {
  let at = 0;
  for (const child of node.childNodes) {
    if (child.nodeType === Node.ELEMENT_NODE) drawText(page, child, alpha, clips);
    const text = child.textContent;
    if (child.nodeType === Node.TEXT_NODE) {
      for (let from = 0, to; from < text.length; from = to) {
        const kind = kindOf(text[from]);
        for (to = from + 1; to < text.length && kindOf(text[to]) === kind;) to++;
        if (text.slice(from, to).trim()) drawRun(page, node, text.slice(from, to), at + from, kind, alpha, clips);
      }
    }
    at += text.length;
  }
}

const kindOf = (char) => (char === " " ? "plain" : !codeOf(char) ? "picture" : codeOf(char)[0] ? "symbol" : "plain");

function drawRun(page, node, text, at, kind, alpha, clips) {
  if (at >= node.getNumberOfChars()) return;
  const style = getComputedStyle(node),
    { x, y } = node.getStartPositionOfChar(at),
    size = parseFloat(style.fontSize),
    fill = ink(style.fill, "rg");
  if (!fill || !size) return;
  if (kind === "picture") {
    const wide = node.getSubStringLength(at, text.length);
    const canvas = pictureOf(text, wide, size, style);
    const m = matrixOf(page, node);
    place(page, canvas, [x, y - size, wide, 1.4 * size], m, alpha * fill.alpha, clips);
    return;
  }
  const family = /times|georgia|(^|[^-])serif/i.test(style.fontFamily)
    ? "Times"
    : /courier|mono/i.test(style.fontFamily)
      ? "Courier"
      : "Helvetica";
  const font = kind === "symbol" ? "Symbol" : FONTS[family][Number(Number(style.fontWeight) >= 600)],
    codes = [...text].map((c) => codeOf(c)[1].toString(16).padStart(2, "0")).join("");
  within(page, matrixOf(page, node), clips, [
    alphaOf(page, alpha * fill.alpha, 1),
    fill.paint,
    `BT /F${FONT_NAMES.indexOf(font)} ${short(size)} Tf 1 0 0 -1 ${short(x)} ${short(y)} Tm <${codes}> Tj ET`,
  ]);
}

function pictureOf(text, wide, size, style) {
  const canvas = document.createElement("canvas"),
    g = canvas.getContext("2d");
  canvas.width = Math.ceil(wide * FINE);
  canvas.height = Math.ceil(1.4 * size * FINE);
  g.font = `${style.fontWeight} ${size * FINE}px ${style.fontFamily}`;
  g.fillStyle = style.fill;
  g.fillText(text, 0, size * FINE);
  return canvas;
}

function drawImage(page, node, alpha, clips) {
  const [x, y, w, h] = ["x", "y", "width", "height"].map((k) => Number(node.getAttribute(k))),
    canvas = /** @type {any} */ (node)._picture;
  if (canvas) place(page, canvas, [x, y, w, h], matrixOf(page, node), alpha, clips);
}

function place(page, canvas, [x, y, w, h], m, alpha, clips) {
  page.images.push(canvas);
  const box = `${[w, 0, 0, -h, x, y + h].map(short).join(" ")} cm /I${page.images.length - 1} Do`;
  within(page, m, clips, [alphaOf(page, alpha, 1), box]);
}

async function deflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const stream = async (about, bytes) => {
  const packed = await deflated(bytes);
  return [`<< ${about} /Filter /FlateDecode /Length ${packed.length} >>\nstream\n`, packed, "\nendstream"];
};

/** The file: catalog, pages, page, its operators, fonts, then two objects for each picture. */
async function assemble(page, wide, high) {
  const fonts = FONT_NAMES.map(
    (f, k) =>
      `/F${k} << /Type /Font /Subtype /Type1 /BaseFont /${f}${f === "Symbol" ? "" : " /Encoding /WinAnsiEncoding"} >>`,
  );
  const states = [...page.alphas].map(
    ([key, name]) => `/${name} << /ca ${key.split(" ")[0]} /CA ${key.split(" ")[1]} >>`,
  );
  const pictures = page.images.map((_, k) => `/I${k} ${5 + 2 * k} 0 R`);
  const resources = [
    `<< /Font << ${fonts.join(" ")} >>`,
    `/ExtGState << ${states.join(" ")} >>`,
    `/XObject << ${pictures.join(" ")} >> >>`,
  ].join(" ");
  const objects = [
    ["<< /Type /Catalog /Pages 2 0 R >>"],
    ["<< /Type /Pages /Kids [3 0 R] /Count 1 >>"],
    [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${short(wide)} ${short(high)}]`,
      ` /Contents 4 0 R /Resources ${resources} >>`,
    ],
    await stream("", new TextEncoder().encode(page.out.join("\n"))),
  ];
  for (const [k, canvas] of page.images.entries()) {
    const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height),
      about = `/Type /XObject /Subtype /Image /Width ${width} /Height ${height} /BitsPerComponent 8 /ColorSpace`;
    const [rgb, covered] = [new Uint8Array(3 * width * height), new Uint8Array(width * height)];
    for (let q = 0; q < covered.length; q++) {
      rgb.set(data.subarray(4 * q, 4 * q + 3), 3 * q);
      covered[q] = data[4 * q + 3];
    }
    objects.push(await stream(`${about} /DeviceRGB /SMask ${6 + 2 * k} 0 R`, rgb));
    objects.push(await stream(`${about} /DeviceGray`, covered));
  }
  return fileOf(objects);
}

function fileOf(objects) {
  const parts = [],
    starts = [];
  let length = 0;
  const add = (part) => {
    const bytes = typeof part === "string" ? new TextEncoder().encode(part) : part;
    parts.push(bytes);
    length += bytes.length;
  };
  add("%PDF-1.4\n");
  objects.forEach((object, k) => {
    starts.push(length);
    [`${k + 1} 0 obj\n`, ...object, "\nendobj\n"].forEach(add);
  });
  const table = length;
  add(`xref\n0 ${objects.length + 1}\n0000000000 65535 f \n`);
  starts.forEach((start) => add(`${String(start).padStart(10, "0")} 00000 n \n`));
  add(`trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${table}\n%%EOF\n`);
  return new Blob(parts, { type: "application/pdf" });
}
