// What a map shows: points, names, outline and count, at most once a frame; and the same as a PNG.

import { GRAY, fromHex, line, offerPicture, packed, say, sizeCanvas, theme } from "../shared/dom.js";
import { drawNames } from "./side_by_side.js";

const PALE = 0.22; // alpha of what is not selected
const RINGED = 40; // selected points that are ringed: so few are lost among the others

export function view(map) {
  const w = map.stage.clientWidth,
    h = map.stage.clientHeight;
  if (!map.view) {
    const scale = Math.min(Math.max(1, w - 40) / map.box.wide, Math.max(1, h - 40) / map.box.high);
    map.view = {
      scale,
      x: w / 2 - (map.box.x0 + map.box.span / 2) * scale,
      y: h / 2 + (map.box.y0 + map.box.span / 2) * scale,
    };
  }
  return map.view;
}

/** One redraw at the next frame; `stale`: the points too, not only what is drawn over them. */
export function schedule(map, stale) {
  map.stale ||= Boolean(stale);
  if (!map.frame)
    map.frame = requestAnimationFrame(() => {
      map.frame = 0;
      draw(map);
    });
}

function draw(map) {
  if (!map.xy || !map.root.isConnected || !map.stage.clientWidth) return;
  if (map.stale) drawPoints(map);
  drawOver(map);
  map.stale = false;
  if (map.pending) {
    map.timings.push(performance.now() - map.pending);
    map.pending = 0;
  }
}

function pointSize(map) {
  return map.n > 20000 ? 2 : map.n > 5000 ? 3 : map.n > 2500 ? 5 : map.n > 1200 ? 6 : 7;
}

/** The pixels of a round point: their places and how much of each is covered. Small ones are square. */
function stamp(size) {
  const dx = [],
    dy = [],
    cover = [],
    round = size > 3,
    r = size / 2;
  for (let b = 0; b < size; b++)
    for (let a = 0; a < size; a++) {
      const c = round ? Math.min(1, Math.max(0, r - Math.hypot(a + 0.5 - r, b + 0.5 - r) + 0.5)) : 1;
      if (c > 0.1) {
        dx.push(a);
        dy.push(b);
        cover.push(c);
      }
    }
  return { size, dx: Int8Array.from(dx), dy: Int8Array.from(dy), cover };
}

/** Points in a mixed order, so that no category covers the others, written into pixels (50,000
 *  rectangles would take a canvas 50 ms); where something is selected, first what is not, pale. */
function drawPoints(map) {
  const [g] = sizeCanvas(map.canvas),
    v = view(map),
    dpr = devicePixelRatio || 1,
    some = map.picked.length > 0;
  const { width, height } = map.canvas,
    { xy, lit, order, color } = map,
    size = Math.round(pointSize(map) * dpr),
    half = size / 2;
  if (!width || !height) return;
  if (!map.image || map.image.width !== width || map.image.height !== height) map.image = new ImageData(width, height);
  if (map.dot?.size !== size) map.dot = stamp(size);
  const pixels = new Uint32Array(map.image.data.buffer).fill(0),
    scale = v.scale * dpr,
    vx = v.x * dpr - half,
    vy = v.y * dpr - half;
  const hides = map.meta.palette.map((_, k) => map.hidden.has(k));
  for (let pass = some ? 0 : 1; pass < 2; pass++) {
    const inks = map.meta.palette.map((hex) => inkOf(map.dot, ...(pass ? [fromHex(hex), 0.9] : [GRAY, PALE])));
    for (let q = 0; q < order.length; q++) {
      const i = order[q],
        k = color[i];
      if (hides[k] || (some && lit[i] !== pass)) continue;
      const x = Math.round(xy[2 * i] * scale + vx),
        y = Math.round(vy - xy[2 * i + 1] * scale);
      if (x <= -size || y <= -size || x >= width || y >= height) continue;
      if (size <= 3) fillSquare(pixels, width, height, x, y, size, inks[k].full);
      else putStamp(pixels, width, height, x, y, map.dot, inks[k]);
    }
  }
  g.putImageData(map.image, 0, 0);
}

/** A color for each pixel of a point, and where it is covered in full. */
function inkOf(dot, rgb, alpha) {
  return { rim: Uint32Array.from(dot.cover, (c) => packed(rgb, alpha * c)), full: packed(rgb, alpha) };
}

function fillSquare(pixels, width, height, x, y, size, color) {
  const right = Math.min(width, x + size),
    bottom = Math.min(height, y + size);
  for (let b = Math.max(0, y); b < bottom; b++)
    for (let a = Math.max(0, x); a < right; a++) pixels[b * width + a] = color;
}

/** A point's rim is drawn on empty pixels alone: over another point it is that point, or full. */
function putStamp(pixels, width, height, x, y, { dx, dy, cover }, { rim, full }) {
  for (let k = 0; k < dx.length; k++) {
    const a = x + dx[k],
      b = y + dy[k];
    if (a < 0 || b < 0 || a >= width || b >= height) continue;
    const at = b * width + a;
    if (!pixels[at]) pixels[at] = rim[k];
    else if (cover[k] > 0.5) pixels[at] = full;
  }
}

/** What is under the pointer, the path that is being drawn, and the count. */
function drawOver(map) {
  const [g] = sizeCanvas(map.over),
    v = view(map),
    size = pointSize(map),
    { accent } = theme(map.root);
  const ring = (i, width) => {
    g.strokeStyle = accent;
    g.lineWidth = width;
    g.beginPath();
    g.arc(map.xy[2 * i] * v.scale + v.x, v.y - map.xy[2 * i + 1] * v.scale, size + 1, 0, 2 * Math.PI);
    g.stroke();
  };
  if (map.picked.length <= RINGED) for (const row of map.picked) for (let i = row; i < map.n; i += map.rows) ring(i, 1);
  if (map.hover >= 0) ring(map.hover, 2);
  if (map.path && map.path.length > 1) {
    const path = outline(map);
    line(g, [...path, path[0]], accent, 1.5);
  }
  if (map.meta.panels) drawNames(map, g, v);
  say(
    map.count,
    map.missed ||
      (map.picked.length
        ? `${many(map.picked.length)} of ${many(map.rows)} selected`
        : map.meta.note || `${many(map.rows)} points`),
  );
}

const many = (n) => n.toLocaleString("en");

export function outline(map) {
  if (map.mode !== "box") return map.path;
  const [x0, y0] = map.path[0],
    [x1, y1] = map.path[map.path.length - 1];
  return [
    [x0, y0],
    [x1, y0],
    [x1, y1],
    [x0, y1],
  ];
}

/** Points, names of maps and the legend as one picture. */
export function savePng(map) {
  const { ink, paper } = theme(map.root),
    dpr = devicePixelRatio || 1,
    { names, palette, title } = map.meta;
  const key = document.createElement("canvas"),
    both = document.createElement("canvas");
  both.width = key.width = map.canvas.width;
  both.height = map.canvas.height;
  const g = both.getContext("2d");
  g.drawImage(map.canvas, 0, 0);
  g.setTransform(dpr, 0, 0, dpr, 0, 0);
  if (map.meta.panels) drawNames(map, g, view(map));
  drawKey(
    key,
    names.map((name, k) => [name, palette[k]]).filter((_, k) => !map.hidden.has(k)),
    ink,
    dpr,
  );
  offerPicture([[both], [key]], paper, `${title.replaceAll(/[^\w.-]+/g, "-").toLowerCase()}.png`, title, ink);
}

/** The legend's entries, line by line, on a canvas that grows to hold them. */
function drawKey(canvas, entries, ink, dpr) {
  const g = canvas.getContext("2d"),
    wide = canvas.width / dpr,
    font = "12px 'Source Sans', sans-serif";
  g.font = font;
  let x = 4,
    y = 12;
  const at = entries.map(([name]) => {
    const w = g.measureText(name).width + 32;
    if (x > 4 && x + w > wide) {
      x = 4;
      y += 18;
    }
    const here = [x, y];
    x += w;
    return here;
  });
  canvas.height = (y + 10) * dpr;
  g.setTransform(dpr, 0, 0, dpr, 0, 0);
  g.font = font;
  g.textBaseline = "middle";
  entries.forEach(([name, color], k) => {
    const [a, b] = at[k];
    g.fillStyle = color;
    g.beginPath();
    g.arc(a + 5, b, 5, 0, 2 * Math.PI);
    g.fill();
    g.fillStyle = ink;
    g.fillText(name, a + 14, b + 1);
  });
}
