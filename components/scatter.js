// A map of up to 50,000 points on a Canvas 2D: pan, zoom, lasso, box, hover with thumbnail, search,
// and a gallery of what is selected. Only row numbers of a selection go to the server.

const CELL = 64; // cells along each side of the grid that finds the nearest point
const FEW = 500; // rows that go back as a list; more go as one bit per point
const PALE = 0.22; // alpha of what is not selected
const MODES = { lasso: "lasso", box: "box", pan: "pan" };

export default function (component) {
  const { parentElement, setStateValue } = component, data = unpack(component.data);
  const map = parentElement._map || (parentElement._map = build(parentElement));
  map.send = (rows) => setStateValue("selection", { ...packRows(rows, map.rows), turn: ++map.turn });
  load(map, data);
  schedule(map, true);
  return () => { cancelAnimationFrame(map.frame); map.observer.disconnect(); map.root.remove(); parentElement._map = null; };
}

/** Row numbers as they are, or, where there are many, as base64 of one bit per point. */
function packRows(rows, n) {
  if (rows.length <= FEW) return { rows };
  const bits = new Uint8Array(Math.ceil(n / 8));
  for (const i of rows) bits[i >> 3] |= 1 << (i & 7);
  let text = "";
  for (let k = 0; k < bits.length; k += 8192) text += String.fromCharCode(...bits.subarray(k, k + 8192));
  return { bits: btoa(text) };
}

function build(parent) {
  const map = { view: null, mode: "lasso", picked: [], lit: new Uint8Array(0), hover: -1, timings: [], path: null, hidden: new Set(), turn: 0 };
  map.canvas = el("canvas", { tabindex: 0, role: "img" });
  map.over = el("canvas", { "aria-hidden": "true", class: "over" });
  map.tip = el("div", { class: "tip", hidden: "" });
  map.stage = el("div", { class: "stage" }, map.canvas, map.over, map.tip);
  map.search = el("input", { type: "search", placeholder: "find an id", "aria-label": "find a sample by id" });
  map.search.onchange = () => find(map, map.search.value.trim());
  map.count = el("span", { role: "status" });
  const button = (text, onclick) => el("button", { type: "button", onclick }, text);
  map.morph = morphSlider(map, () => schedule(map, true));
  map.legend = el("div", { class: "legend", role: "group", "aria-label": "categories" });
  map.gallery = el("div", {});
  map.root = el("div", { class: "map" },
    el("div", { class: "tools" }, ...choices(MODES, map.mode, (m) => { map.mode = m; }),
      button("whole map", () => { map.view = null; schedule(map, true); }), map.search,
      button("clear", () => choose(map, [])), button("PNG", () => savePng(map)), map.morph, map.count),
    map.stage, map.legend, map.gallery);
  parent.append(map.root);
  listen(map);
  map.observer = new ResizeObserver(() => schedule(map, true));
  map.observer.observe(map.stage);
  return map;
}

function listen(map) {
  const c = map.canvas;
  c.onwheel = (e) => { e.preventDefault(); zoom(map, e.offsetX, e.offsetY, Math.exp(-e.deltaY * 0.0015), e.timeStamp); };
  c.onpointerdown = (e) => start(map, e);
  c.onpointermove = (e) => move(map, e);
  c.onpointerup = () => finish(map);
  c.onpointercancel = () => { map.drag = map.path = null; schedule(map); };
  c.onpointerleave = () => { map.hover = -1; map.tip.hidden = true; schedule(map); };
  c.ondblclick = () => { map.view = null; schedule(map, true); };
  c.onkeydown = (e) => keys(map, e);
}

function load(map, data) {
  const meta = data.meta;
  map.meta = meta;
  map.root.style.setProperty("--map-height", `${meta.height || 520}px`);
  if (map.key !== meta.key) {
    map.key = meta.key;
    map.view = null;
    map.xy = new Float32Array(data.xy.slice().buffer);
    map.n = map.xy.length / 2;
    map.rows = meta.panels ? meta.panels.rows : map.n;
    loadMorph(map, data.target);
    map.lit = new Uint8Array(map.n);
    map.picked = [];
    map.stamp = undefined;
    bounds(map);
    grid(map);
    map.sprite = null;
    if (data.sprite && data.sprite.length) {
      createImageBitmap(new Blob([data.sprite], { type: "image/png" })).then((b) => { map.sprite = b; drawPictures(map); });
    }
  }
  map.colour = data.colour.slice();
  map.ids = meta.ids;
  if (map.stamp !== meta.stamp) {
    map.stamp = meta.stamp;
    light(map, (meta.selection || []).filter((i) => i < map.rows));
  }
  drawLegend(map);
  map.canvas.setAttribute("aria-label", `${meta.title}: ${map.rows} points. Arrow keys pan, plus and minus zoom, n and p walk through the points, Enter selects, a selects all, Escape clears.`);
}

function bounds(map) {
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < map.n; i++) {
    const x = map.xy[2 * i], y = map.xy[2 * i + 1];
    if (x < x0) x0 = x;
    if (x > x1) x1 = x;
    if (y < y0) y0 = y;
    if (y > y1) y1 = y;
  }
  if (!map.n) x0 = x1 = y0 = y1 = 0;
  if (map.meta.panels) [x0, x1, y0, y1] = map.meta.panels.box;
  const span = Math.max(x1 - x0, y1 - y0, 1e-9), wide = Math.max(x1 - x0, span / 8), high = Math.max(y1 - y0, span / 8);
  map.box = { x0: (x0 + x1 - span) / 2, y0: (y0 + y1 - span) / 2, span, wide, high };
}

function grid(map) {
  map.cells = Array.from({ length: CELL * CELL }, () => []);
  for (let i = 0; i < map.n; i++) map.cells[rowOf(map, map.xy[2 * i + 1]) * CELL + columnOf(map, map.xy[2 * i])].push(i);
}

const clamp = (k) => Math.min(CELL - 1, Math.max(0, k));
function columnOf(map, x) { return clamp(Math.floor(((x - map.box.x0) / map.box.span) * CELL)); }
function rowOf(map, y) { return clamp(Math.floor(((y - map.box.y0) / map.box.span) * CELL)); }

function view(map) {
  const w = map.stage.clientWidth, h = map.stage.clientHeight;
  if (!map.view) {
    const scale = Math.min(Math.max(1, w - 40) / map.box.wide, Math.max(1, h - 40) / map.box.high);
    map.view = { scale, x: w / 2 - (map.box.x0 + map.box.span / 2) * scale, y: h / 2 + (map.box.y0 + map.box.span / 2) * scale };
  }
  return map.view;
}

/** One redraw at the next frame; `stale`: the points too, not only what is drawn over them. */
function schedule(map, stale) {
  map.stale ||= Boolean(stale);
  if (!map.frame) map.frame = requestAnimationFrame(() => { map.frame = 0; draw(map); });
}

function draw(map) {
  if (!map.xy || !map.root.isConnected || !map.stage.clientWidth) return;
  if (map.stale) drawPoints(map);
  drawOver(map);
  map.stale = false;
  if (map.pending) { map.timings.push(performance.now() - map.pending); map.pending = 0; }
}

function pointSize(map) { return map.n > 20000 ? 2 : map.n > 5000 ? 3 : map.n > 1500 ? 4 : 5; }

/** Points group by group, written into pixels (50,000 rectangles would take a canvas 50 ms); where
 *  something is selected, first what is not, pale. */
function drawPoints(map) {
  const [g] = sizeCanvas(map.canvas), v = view(map), dpr = devicePixelRatio || 1, some = map.picked.length > 0;
  const { width, height } = map.canvas, { xy, lit } = map, size = Math.round(pointSize(map) * dpr), half = size / 2;
  if (!width || !height) return;
  if (!map.image || map.image.width !== width || map.image.height !== height) map.image = new ImageData(width, height);
  const pixels = new Uint32Array(map.image.data.buffer).fill(0), scale = v.scale * dpr, vx = v.x * dpr - half, vy = v.y * dpr - half;
  for (let pass = some ? 0 : 1; pass < 2; pass++) {
    for (let k = 0; k < map.groups.length; k++) {
      if (map.hidden.has(k)) continue;
      const colour = pass ? packed(fromHex(map.meta.palette[k]), 0.9) : packed(GREY, PALE), rows = map.groups[k];
      for (let q = 0; q < rows.length; q++) {
        const i = rows[q];
        if (some && lit[i] !== pass) continue;
        const x = Math.round(xy[2 * i] * scale + vx), y = Math.round(vy - xy[2 * i + 1] * scale);
        if (x <= -size || y <= -size || x >= width || y >= height) continue;
        const right = Math.min(width, x + size), bottom = Math.min(height, y + size);
        for (let b = Math.max(0, y); b < bottom; b++) for (let a = Math.max(0, x); a < right; a++) pixels[b * width + a] = colour;
      }
    }
  }
  g.putImageData(map.image, 0, 0);
}

/** What is under the pointer, the path that is being drawn, and the count. */
function drawOver(map) {
  const [g] = sizeCanvas(map.over), v = view(map), size = pointSize(map), { accent } = theme(map.root);
  if (map.hover >= 0) {
    g.strokeStyle = accent;
    g.lineWidth = 2;
    g.strokeRect(map.xy[2 * map.hover] * v.scale + v.x - size, v.y - map.xy[2 * map.hover + 1] * v.scale - size, 2 * size, 2 * size);
  }
  if (map.path && map.path.length > 1) { const path = outline(map); line(g, [...path, path[0]], accent, 1.5); }
  if (map.meta.panels) drawNames(map, g, v);
  map.count.textContent = map.picked.length ? `${map.picked.length} of ${map.rows} selected` : map.meta.note || `${map.rows} points`;
}

function outline(map) {
  if (map.mode !== "box") return map.path;
  const [x0, y0] = map.path[0], [x1, y1] = map.path[map.path.length - 1];
  return [[x0, y0], [x1, y0], [x1, y1], [x0, y1]];
}

function zoom(map, x, y, factor, stamp) {
  const v = view(map);
  v.x = x - (x - v.x) * factor;
  v.y = y - (y - v.y) * factor;
  v.scale *= factor;
  map.pending ||= stamp || performance.now();
  schedule(map, true);
}

function start(map, e) {
  map.canvas.setPointerCapture(e.pointerId);
  map.drag = { x: e.offsetX, y: e.offsetY, pan: map.mode === "pan" || e.button === 1 || e.shiftKey };
  if (!map.drag.pan) map.path = [[e.offsetX, e.offsetY]];
}

function move(map, e) {
  if (map.drag && map.drag.pan) {
    const v = view(map);
    v.x += e.offsetX - map.drag.x;
    v.y += e.offsetY - map.drag.y;
    Object.assign(map.drag, { x: e.offsetX, y: e.offsetY });
    map.pending ||= e.timeStamp;
    schedule(map, true);
    return;
  }
  if (map.path) map.path.push([e.offsetX, e.offsetY]);
  else hover(map, e.offsetX, e.offsetY);
  schedule(map);
}

/** The end of a drag selects what it enclosed; a click selects the point under it. */
function finish(map) {
  const { path, drag } = map, moved = path && path.length > 2 && path.some(([x, y]) => Math.hypot(x - drag.x, y - drag.y) > 4);
  const area = moved ? outline(map) : null;
  map.drag = map.path = null;
  if (area) choose(map, rowsOf(map, inside(map, area)));
  else if (drag && !drag.pan && map.hover >= 0) choose(map, [map.hover % map.rows]);
  schedule(map);
}

function inside(map, path) {
  const v = view(map), found = [], xs = path.map((q) => q[0]), ys = path.map((q) => q[1]);
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  for (let i = 0; i < map.n; i++) {
    const x = map.xy[2 * i] * v.scale + v.x, y = v.y - map.xy[2 * i + 1] * v.scale;
    if (x < x0 || x > x1 || y < y0 || y > y1 || map.hidden.has(map.colour[i])) continue;
    let odd = false;
    for (let a = 0, b = path.length - 1; a < path.length; b = a++) {
      if (ys[a] > y !== ys[b] > y && x < ((xs[b] - xs[a]) * (y - ys[a])) / (ys[b] - ys[a]) + xs[a]) odd = !odd;
    }
    if (odd) found.push(i);
  }
  return found;
}

function light(map, rows) {
  map.picked = rows;
  map.lit.fill(0);
  for (const row of rows) for (let i = row; i < map.n; i += map.rows) map.lit[i] = 1;
  drawPictures(map);
  schedule(map, true);
}

function choose(map, rows) {
  light(map, rows);
  map.send(rows);
}

/** The nearest point within ten pixels, looked for in the cells that these touch. */
function hover(map, x, y) {
  const v = view(map), px = (x - v.x) / v.scale, py = (v.y - y) / v.scale, reach = 10 / v.scale;
  let best = -1, near = reach * reach;
  for (let q = rowOf(map, py - reach); q <= rowOf(map, py + reach); q++) {
    for (let p = columnOf(map, px - reach); p <= columnOf(map, px + reach); p++) {
      for (const i of map.cells[q * CELL + p]) {
        const d = (map.xy[2 * i] - px) ** 2 + (map.xy[2 * i + 1] - py) ** 2;
        if (d < near && !map.hidden.has(map.colour[i])) { near = d; best = i; }
      }
    }
  }
  if (best !== map.hover) tip(map, best);
  if (best >= 0) placeTip(map, x, y);
}

function tip(map, i) {
  map.hover = i;
  map.tip.hidden = i < 0;
  if (i < 0) return;
  const parts = map.sprite ? [picture(map, i, 72)] : [];
  map.tip.replaceChildren(...parts, el("div", {}, map.ids[i % map.rows] ?? ""), el("div", {}, map.meta.names[map.colour[i]] ?? ""), el("div", {}, map.meta.hints[i % map.rows] ?? ""));
}

function placeTip(map, x, y) {
  map.tip.style.left = `${Math.max(0, Math.min(x + 14, map.stage.clientWidth - 130))}px`;
  map.tip.style.top = `${Math.max(0, Math.min(y + 14, map.stage.clientHeight - 130))}px`;
}

function picture(map, i, size) { return pictureOf(map.sprite, map.meta, i % map.rows, size, map.ids[i % map.rows] ?? ""); }

function drawPictures(map) {
  drawGallery(map.gallery, map.sprite ? map.picked : [], {
    make: (i) => picture(map, i, 56),
    name: (i) => map.ids[i] ?? String(i),
    point: (i) => { map.hover = i; schedule(map); },
    click: (i) => choose(map, [i]),
  });
}

function drawLegend(map) {
  map.groups = map.meta.palette.map(() => []);
  for (let i = 0; i < map.n; i++) map.groups[map.colour[i]].push(i);
  map.legend.replaceChildren(...map.meta.names.map((name, k) => {
    const dot = el("i", {}), shown = !map.hidden.has(k);
    const b = el("button", { type: "button", "aria-pressed": String(shown), title: "show or hide" }, dot, name);
    dot.style.background = map.meta.palette[k];
    b.onclick = () => { if (shown) map.hidden.add(k); else map.hidden.delete(k); drawLegend(map); schedule(map, true); };
    return b;
  }));
}

function find(map, text) {
  if (!text) return;
  const rows = [];
  for (let i = 0; i < map.rows; i++) if (map.ids[i] === text || map.ids[i].endsWith(text)) rows.push(i);
  choose(map, rows);
}

function keys(map, e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const v = view(map), w = map.stage.clientWidth / 2, h = map.stage.clientHeight / 2;
  const pan = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[e.key];
  if (pan) { v.x += pan[0]; v.y += pan[1]; schedule(map, true); }
  else if (e.key === "+" || e.key === "=") zoom(map, w, h, 1.25);
  else if (e.key === "-") zoom(map, w, h, 0.8);
  else if (e.key === "Escape") choose(map, []);
  else if (e.key === "a") choose(map, Array.from({ length: map.rows }, (_, i) => i).filter((i) => !map.hidden.has(map.colour[i])));
  else if (e.key === "n" || e.key === "p") walk(map, e.key === "n" ? 1 : -1);
  else if (e.key === "Enter" && map.hover >= 0) choose(map, [map.hover % map.rows]);
  else return;
  e.preventDefault();
}

/** The next point (of the selection, if there is one), shown as if it were pointed at. */
function walk(map, step) {
  const rows = map.picked.length > 1 ? map.picked : null, count = rows ? rows.length : map.rows;
  if (!count) return;
  map.walked = (((map.walked ?? (step > 0 ? -1 : 0)) + step) % count + count) % count;
  const i = rows ? rows[map.walked] : map.walked, v = view(map);
  tip(map, i);
  placeTip(map, map.xy[2 * i] * v.scale + v.x, v.y - map.xy[2 * i + 1] * v.scale);
  schedule(map);
}

function savePng(map) { offerPicture([map.canvas], theme(map.root).paper, "map.png"); }
