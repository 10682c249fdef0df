// The Loss Lab's main parts: figures in words, the matrix with thumbnails on its axes, and the bars
// of the chosen anchor.

import {
  BLUE,
  GRAY,
  GREEN,
  ORANGE,
  el,
  number,
  offerCsv,
  offerPicture,
  packed,
  rgb,
  say,
  sizeCanvas,
} from "../shared/dom.js";
import { orderOf } from "./order.js";
import { VIEWS } from "./main.js";
import { knobText } from "../shared/knob.js";

const BAR = 22; // height of a bar in CSS pixels
const MOST = 1e-38;

export function isHinge(lab) {
  return Boolean(lab.kernel) && lab.kernel.family === "hinge";
}

/** Near is small: distances, and similarities that a loss takes with a minus. */
export function isFar(lab) {
  return lab.meta.scoreName.includes("distance");
}

export function few(x) {
  return x > 0 && x < 0.05 ? "< 0.1" : x < 9.95 ? x.toFixed(1) : x.toFixed(0);
}

/** The mean over anchors of effective negatives, and of all negatives; null without any. */
export function meanNegatives(o, n) {
  let sum = 0,
    all = 0,
    count = 0;
  for (let i = 0; i < n; i++)
    if (o.negatives[i] > 0) {
      sum += o.effective[i];
      all += o.negatives[i];
      count++;
    }
  return count ? [sum / count, all / count] : null;
}

/** How hard an anchor's positives are pulled: Σ_p |∂L_i/∂s_ip|. */
export function pullOf(o, M, i, w) {
  let pull = 0;
  for (let k = i * w; k < (i + 1) * w; k++) if (M[k] === 1) pull += Math.abs(o.grad[k]);
  return pull;
}

export function drawFigures(lab) {
  const o = lab.out,
    i = lab.anchor,
    hinge = isHinge(lab),
    many = positivesOf(lab).length;
  const told = hinge ? "Negatives still pushed" : "Effective negatives",
    defined = o && o.weight[i] > 0;
  say(lab.effectiveTitle, `${told}, mean`);
  say(lab.ownTitle, `Anchor ${lab.meta.names[i] ?? i}: loss`);
  say(lab.ownEffectiveTitle, `Its ${told.toLowerCase()}`);
  say(lab.pullTitle, many === 1 ? "Gradient on its positive" : "Gradient on its positives, sum");
  const mean = o && meanNegatives(o, lab.n),
    counted = (x) => (hinge ? String(x) : few(x));
  say(lab.loss, !o ? (lab.meta.loss == null ? "–" : number(lab.meta.loss)) : o.valid ? number(o.value) : "undefined");
  say(lab.effective, !o ? "–" : mean ? `${few(mean[0])} of ${mean[1].toFixed(0)}` : "none");
  say(
    lab.own,
    !o
      ? "–"
      : defined
        ? number(o.loss[i])
        : hinge && many && o.negatives[i]
          ? "not counted: no active triplet"
          : "undefined: it lacks a partner",
  );
  say(lab.ownEffective, !o ? "–" : o.negatives[i] ? `${counted(o.effective[i])} of ${o.negatives[i]}` : "none");
  say(lab.pull, defined ? number(pullOf(o, lab.M, i, lab.w)) : "–");
  const bounded = defined && boundedBy(lab.kernel, many);
  say(lab.bound, bounded ? ` at most ${number(1 / lab.kernel.temperature)}${lab.kernel.knob ? " (1/τ)" : ""}` : "");
}

/** Whether the pull on all positives together can't be more than 1/τ. */
function boundedBy(kernel, positives) {
  if (!kernel || kernel.family !== "softmax" || kernel.scale !== "none") return false;
  return positives === 1 || kernel.denominator === "own_positive" || kernel.aggregate !== "out";
}

/** The chosen anchor's positives; like its ranking, they don't change with the knob. */
export function positivesOf(lab) {
  const at = lab.anchor * lab.w;
  return ranked(lab).filter((j) => lab.M[at + j] === 1);
}

// A float's sign, exponent and four digits of its mantissa choose one of 8,192 colors: a scale over
// all magnitudes without a power per cell.
export const BITS = 19,
  SHADES = 1 << (32 - BITS);

function shades(colorOf) {
  const table = new Uint32Array(SHADES),
    bits = new Uint32Array(1),
    value = new Float32Array(bits.buffer);
  for (let k = 0; k < SHADES; k++) {
    bits[0] = k << BITS;
    table[k] = Number.isFinite(value[0]) ? colorOf(value[0]) : 0;
  }
  return table;
}

const weightShade = (color) => shades((p) => packed(color, p > 0 ? Math.pow(Math.min(1, p), 0.35) : 0));
const TABLES = { positive: weightShade(BLUE), negative: weightShade(ORANGE) };

const DIVERGING = new Map();

/** Shades of both signs up to `top`, in half octaves, so that a drag seldom makes a new table. */
export function divergingShades(top, turned) {
  const half = Math.ceil(2 * Math.log2(top)),
    name = 2 * half + Number(turned);
  if (!DIVERGING.has(name)) {
    const most = Math.pow(2, half / 2);
    DIVERGING.set(
      name,
      shades((v) => packed(v < 0 !== turned ? BLUE : ORANGE, Math.pow(Math.min(1, Math.abs(v) / most), 0.4))),
    );
  }
  return DIVERGING.get(name);
}

const APART = 0.15,
  TINTS = [[], [BLUE, 0.4], [ORANGE, 0.15]]; // pairs that are not compared; masks under a value
const OVERLAID = new WeakMap();

/** A table of shades as they look over the tint of mask 1 (positive) or 2 (negative). */
function overlaid(table, mask) {
  if (!OVERLAID.has(table)) OVERLAID.set(table, []);
  const known = OVERLAID.get(table),
    [color, tint] = TINTS[mask];
  return (known[mask] ||= table.map((shade) => {
    const a = (shade >>> 24) / 255,
      all = a + tint * (1 - a);
    return packed(
      [0, 8, 16].map((bits, c) => Math.round((a * ((shade >>> bits) & 255) + tint * (1 - a) * color[c]) / all)),
      all,
    );
  }));
}

export function largest(values) {
  let top = 0;
  for (let k = 0; k < values.length; k++) {
    const v = Math.abs(values[k]);
    if (v > top) top = v;
  }
  return Math.max(top, MOST);
}

/** One pixel per pair, into a buffer that is stretched over the canvas. */
export function paintMatrix(lab) {
  [lab.rows, lab.columns] = orderOf(lab);
  const { n, w, S, M, pixels, out, view, rows, columns } = lab;
  const self = packed(GRAY, 0.75),
    values = view === "grad" ? out && out.grad : out && out.pair;
  const bits = values && new Uint32Array(values.buffer),
    tables = [null, TABLES.positive, TABLES.negative, null];
  if (view === "grad" && values) tables[1] = tables[2] = divergingShades(largest(values), isFar(lab)); // a distance that grows the loss is pulled
  const marked = lab.overlay || view === "mask";
  if (lab.overlay && values) for (const m of [1, 2]) tables[m] = overlaid(tables[m], m);
  const [low, high] = lab.range,
    span = 255 / (high - low || 1),
    far = isFar(lab);
  const flat = lab.overlay ? [0, BLUE, ORANGE] : [0, GREEN, GREEN],
    least = lab.overlay ? APART : 0;
  const ramps = flat.map(
    (c) =>
      c && Uint32Array.from({ length: 256 }, (_, k) => packed(c, least + (1 - least) * (far ? 1 - k / 255 : k / 255))),
  );
  const plain = [marked ? packed(GRAY, APART) : 0, packed(BLUE, 1), packed(ORANGE, 0.45), self],
    unknown = packed(GRAY, 0.2);
  for (let r = 0, p = 0; r < n; r++) {
    const at = rows[r] * w;
    for (let c = 0; c < w; c++, p++) {
      const k = at + columns[c],
        m = M[k];
      if (m === 0 || m === 3) pixels[p] = plain[m];
      else if (view === "mask") pixels[p] = plain[m];
      else if (view === "score") pixels[p] = ramps[m][((S[k] - low) * span) | 0];
      else if (!values) pixels[p] = unknown;
      else pixels[p] = tables[m][bits[k] >>> BITS];
    }
  }
  lab.buffer.getContext("2d").putImageData(lab.image, 0, 0);
}

export function drawMatrix(lab) {
  const c = lab.matrix,
    dpr = devicePixelRatio || 1,
    size = Math.round(c.clientWidth * dpr);
  if (c.width !== size) c.width = c.height = size;
  const g = c.getContext("2d"),
    strip = lab.sprite ? Math.round(22 * dpr) : 0,
    side = c.width - strip;
  lab.plot = { strip, side };
  g.clearRect(0, 0, c.width, c.height);
  g.imageSmoothingEnabled = lab.w > 1.2 * side; // or single pairs of a large batch would be left out
  g.drawImage(lab.buffer, strip, strip, side, side);
  g.globalAlpha = 0.25;
  g.strokeStyle = lab.ink;
  g.strokeRect(strip + 0.5, strip + 0.5, side - 1, side - 1);
  g.globalAlpha = 1;
  if (strip) axes(lab, g, strip, side);
  const ch = side / lab.n,
    cw = side / lab.w,
    [row, column] = lab.hover || [null, null];
  const top = (i) => strip + lab.rows.indexOf(i) * ch,
    left = (j) => strip + lab.columns.indexOf(j) * cw;
  g.strokeStyle = lab.accent;
  g.lineWidth = 1.5 * dpr;
  g.strokeRect(0, top(lab.anchor), c.width, Math.max(ch, 2));
  g.strokeStyle = lab.ink;
  if (row !== null && column !== null) g.strokeRect(left(column), top(row), Math.max(cw, 3), Math.max(ch, 3));
  else if (row !== null) g.strokeRect(0, top(row), c.width, Math.max(ch, 2));
  else if (column !== null) g.strokeRect(left(column), 0, Math.max(cw, 2), c.height);
  describe(lab);
  tell(lab);
}

/** Legend and label of the matrix, when they are others than before. */
function tell(lab) {
  const name = [lab.view, lab.overlay, isHinge(lab), isFar(lab), lab.key].join(),
    marked = lab.overlay || lab.view === "mask",
    blank = lab.overlay ? "tint alone" : "blank";
  if (lab.toldOf === name) return;
  lab.toldOf = name;
  lab.matrix.setAttribute(
    "aria-label",
    `${VIEWS[lab.view]}: ${lab.n} anchors by ${lab.w} candidates. Up and down choose the anchor, left and right a candidate.`,
  );
  const item = (color, text, alpha = 1) => {
    const i = el("i", {});
    i.style.background = rgb(color, alpha);
    return el("span", {}, i, text);
  };
  const positive = [item(BLUE, "positive"), item(ORANGE, "negative")],
    itself = item(GRAY, "itself", 0.75);
  if (lab.view === "score")
    lab.legend.replaceChildren(
      ...(lab.overlay ? positive : [item(GREEN, isFar(lab) ? "dark: near" : "dark: similar")]),
      itself,
    );
  else if (lab.view === "grad")
    lab.legend.replaceChildren(
      item(BLUE, "pulled nearer"),
      item(ORANGE, "pushed away"),
      itself,
      el("span", {}, `${blank}: not moved`),
    );
  else if (lab.view === "weight" && isHinge(lab))
    lab.legend.replaceChildren(
      item(BLUE, "positive, pulled"),
      item(ORANGE, "negative, still pushed"),
      itself,
      el("span", {}, `${blank}: no longer moved`),
    );
  else
    lab.legend.replaceChildren(
      ...positive,
      itself,
      ...(lab.view === "weight" ? [el("span", {}, "the stronger, the more weight")] : []),
    );
  if (!lab.M.includes(3)) itself.remove();
  if (lab.M.includes(0))
    lab.legend.append(marked ? item(GRAY, "not compared", APART) : el("span", {}, "blank: not compared"));
  if (lab.overlay && lab.view !== "score" && lab.view !== "mask")
    lab.legend.append(el("span", {}, "tint: positive (blue), negative (orange)"));
}

function axes(lab, g, strip, side) {
  const place = (order, thumbs, at) => {
    const fit = Math.min(Math.max(1, Math.floor(side / strip)), order.length);
    for (let k = 0; k < fit; k++) {
      const row = Math.floor(((k + 0.5) * order.length) / fit);
      at(thumbs[order[row]], Math.min(strip + (row / order.length) * side, side));
    }
  };
  place(lab.rows, lab.meta.rowThumb, (t, y) => thumb(lab, g, t, 0, y, strip - 2));
  place(lab.columns, lab.meta.columnThumb, (t, x) => thumb(lab, g, t, x, 0, strip - 2));
}

function thumb(lab, g, index, x, y, size) {
  if (!lab.sprite || index === undefined || index < 0) return;
  const { tile, across } = lab.meta;
  g.drawImage(lab.sprite, (index % across) * tile, Math.floor(index / across) * tile, tile, tile, x, y, size, size);
}

/** The pair that is pointed at, or the anchor: in words, and as images. */
function describe(lab) {
  say(
    lab.hint,
    lab.hover
      ? inWords(lab, ...lab.hover)
      : "Point at a cell; click a row (or use the arrow keys) to choose the anchor.",
  );
  if (!lab.sprite) return;
  const [g, , side] = sizeCanvas(lab.faces),
    [i, j] = lab.hover || [lab.anchor, null],
    { rowThumb, columnThumb } = lab.meta;
  g.imageSmoothingEnabled = false;
  if (i !== null) thumb(lab, g, rowThumb[i], 0, 0, side);
  if (j !== null) thumb(lab, g, columnThumb[j], side + 6, 0, side);
}

function inWords(lab, i, j) {
  const { names, columnNames, scoreName } = lab.meta;
  if (i === null || j === null) return i === null ? columnNames[j] : names[i];
  const k = i * lab.w + j,
    m = lab.M[k];
  const parts = [
    `${names[i]} → ${columnNames[j]}`,
    ["not compared", "positive", "negative", "itself"][m],
    `${scoreName} ${lab.S[k].toFixed(4)}`,
  ];
  if (lab.out && (m === 1 || m === 2))
    parts.push(`weight ${lab.out.pair[k].toPrecision(3)}`, `gradient ${lab.out.grad[k].toPrecision(3)}`);
  return parts.join(" · ");
}

/** Anchor and candidate under the pointer; on an axis one of them is null. */
export function cellAt(lab, e) {
  if (!lab.plot) return null;
  const dpr = devicePixelRatio || 1,
    x = e.offsetX * dpr - lab.plot.strip,
    y = e.offsetY * dpr - lab.plot.strip;
  const row = y < 0 ? null : lab.rows[Math.floor((y / lab.plot.side) * lab.n)];
  const column = x < 0 ? null : lab.columns[Math.floor((x / lab.plot.side) * lab.w)];
  return row === undefined || column === undefined || (row === null && column === null) ? null : [row, column];
}

/** Candidates of the anchor, nearest first; the order doesn't change with the knob. */
export function ranked(lab) {
  if (lab.cache.rankedFor === lab.anchor) return lab.cache.ranked;
  const at = lab.anchor * lab.w,
    rows = [],
    sign = isFar(lab) ? 1 : -1;
  for (let j = 0; j < lab.w; j++) if (lab.M[at + j] === 1 || lab.M[at + j] === 2) rows.push(j);
  rows.sort((a, b) => sign * (lab.S[at + a] - lab.S[at + b]));
  lab.cache.rankedFor = lab.anchor;
  return (lab.cache.ranked = rows);
}

export function drawBars(lab) {
  const [g, width, height] = sizeCanvas(lab.bars),
    at = lab.anchor * lab.w,
    hinge = isHinge(lab),
    rows = ranked(lab);
  const fit = Math.max(4, Math.floor(height / BAR));
  const from = (lab.barFrom = Math.max(0, Math.min(lab.barFrom || 0, rows.length - fit))),
    shown = rows.slice(from, from + fit);
  lab.barRows = shown;
  lab.turns.hidden = rows.length <= fit;
  lab.turns.children[0].disabled = from === 0;
  lab.turns.children[1].disabled = from + fit >= rows.length;
  lab.barFit = Math.max(1, height / BAR);
  const what = hinge
    ? `${lab.meta.scoreName}; pale: no longer moved`
    : lab.out
      ? "weight; +: positive"
      : lab.meta.scoreName;
  say(
    lab.barTitle,
    `Anchor ${lab.meta.names[lab.anchor] ?? ""}: ${from ? `its nearest ${from + 1} to ${from + shown.length}` : `the nearest ${shown.length}`} of ${rows.length} (${what})`,
  );
  const value = (j) => (hinge || !lab.out ? lab.S[at + j] : lab.out.pair[at + j]);
  const top = Math.max(1e-12, ...(from ? rows : shown).map((j) => Math.abs(value(j)))),
    left = lab.sprite ? BAR + 6 : 4;
  g.textBaseline = "middle";
  shown.forEach((j, k) => {
    const y = k * BAR,
      positive = lab.M[at + j] === 1,
      v = value(j),
      length = Math.max(1, (Math.abs(v) / top) * (width - left - 120));
    thumb(lab, g, lab.meta.columnThumb[j], 0, y + 1, BAR - 2);
    g.fillStyle = rgb(positive ? BLUE : ORANGE, hinge && lab.out && lab.out.pair[at + j] === 0 ? 0.3 : 1);
    g.fillRect(left, y + 3, length, BAR - 6);
    g.fillStyle = lab.ink;
    g.fillText(
      `${positive ? "+ " : ""}${v > 0 && v < 1e-4 ? "< 0.0001" : number(v)}  ${lab.meta.columnNames[j]}`,
      left + length + 5,
      y + BAR / 2,
    );
    if (lab.hover && lab.hover[1] === j) {
      g.strokeStyle = lab.accent;
      g.lineWidth = 2;
      g.strokeRect(1, y, width - 2, BAR);
    }
  });
  if (lab.stale || !lab.bars.hasAttribute("aria-label"))
    lab.bars.setAttribute(
      "aria-label",
      `${lab.barTitle.textContent}. Up, down, page up and page down walk through them.`,
    );
}

export function savePng(lab) {
  const panel = lab.panelBox.querySelector("canvas:not([hidden])");
  const { knob, title, names } = lab.meta,
    told = isHinge(lab) ? "negatives still pushed" : "effective negatives";
  const words = [
    title,
    knob ? `${knob.label.split(",")[0]} = ${knobText(lab.value)}` : "",
    `loss ${lab.loss.textContent}`,
    `${told} ${lab.effective.textContent} (mean)`,
    VIEWS[lab.view].toLowerCase(),
    `anchor ${names[lab.anchor]}`,
  ];
  offerPicture(
    [[lab.matrix, lab.bars], ...(panel && lab.panel !== "none" ? [[panel]] : [])],
    lab.paper,
    "loss-lab.png",
    words.filter(Boolean).join(" · "),
    lab.ink,
  );
}

export function saveCsv(lab) {
  const rows = [
      [
        "anchor",
        "candidate",
        "relation",
        "score",
        "weight",
        "gradient",
        "anchor_loss",
        "anchor_weight",
        "anchor_effective_negatives",
      ],
    ],
    o = lab.out;
  const second = lab.panel === "two" && lab.two && lab.two.out;
  if (second) rows[0].push("second_weight", "second_gradient", "second_anchor_loss");
  for (let i = 0; i < lab.n; i++)
    for (let j = 0; j < lab.w; j++) {
      const k = i * lab.w + j,
        what = ["not compared", "positive", "negative", "self"][lab.M[k]];
      rows.push([
        lab.meta.names[i],
        lab.meta.columnNames[j],
        what,
        lab.S[k],
        ...(o ? [o.pair[k], o.grad[k], o.loss[i], o.weight[i], o.effective[i]] : ["", "", "", "", ""]),
      ]);
      if (second) rows[rows.length - 1].push(second.pair[k], second.grad[k], second.loss[i]);
    }
  offerCsv(rows, "loss-lab.csv");
}
