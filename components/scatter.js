// A map of up to 50,000 points on a Canvas 2D: pan, zoom, lasso, box, hover with thumbnail, search,
// and a gallery of what is selected. Only row numbers of a selection go to the server.

const PALETTE = ["#3B7DD8", "#E8833A", "#2FA37C", "#C65B9B", "#D9B23A", "#7A6BD1", "#5BB5DB", "#B4553F", "#7C8794", "#8FAE3F"];
const CELL = 64; // cells along each side of the grid that finds the nearest point
const SHOWN = 240; // pictures in the gallery at once

export default function (component) {
  const { parentElement, setStateValue } = component, data = unpack(component.data);
  const map = parentElement._map || (parentElement._map = build(parentElement));
  map.send = (rows) => setStateValue("selection", rows);
  load(map, data);
  schedule(map);
  return () => { cancelAnimationFrame(map.frame); map.observer.disconnect(); parentElement._map = null; };
}

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k.startsWith("on")) node[k] = v;
    else node.setAttribute(k, v);
  }
  node.append(...children);
  return node;
}

function build(parent) {
  const map = { view: null, mode: "lasso", selection: new Set(), hover: -1, timings: [], path: null, hidden: new Set() };
  const root = parent.querySelector(".root");
  map.canvas = el("canvas", { tabindex: 0, role: "img" });
  map.tip = el("div", { class: "tip", hidden: "" });
  map.stage = el("div", { class: "stage" }, map.canvas, map.tip);
  map.modes = ["lasso", "box", "pan"].map((m) => el("button", { type: "button", "aria-pressed": String(m === map.mode), onclick: () => { map.mode = m; map.modes.forEach((b) => b.setAttribute("aria-pressed", String(b.textContent === m))); } }, m));
  map.search = el("input", { type: "search", placeholder: "find an id", "aria-label": "find a sample by id" });
  map.search.onchange = () => find(map, map.search.value.trim());
  map.count = el("span", {});
  map.clear = el("button", { type: "button", onclick: () => choose(map, []) }, "clear");
  map.home = el("button", { type: "button", onclick: () => { map.view = null; schedule(map); } }, "whole map");
  map.png = el("button", { type: "button", onclick: () => savePng(map) }, "PNG");
  map.legend = el("div", { class: "legend" });
  map.gallery = el("div", { class: "gallery" });
  map.root = el("div", { class: "map" }, el("div", { class: "tools" }, ...map.modes, map.home, map.search, map.clear, map.png, map.count), map.stage, map.legend, map.gallery);
  root.append(map.root);
  const c = map.canvas;
  c.onwheel = (e) => { e.preventDefault(); zoom(map, e.offsetX, e.offsetY, Math.exp(-e.deltaY * 0.0015), e.timeStamp); };
  c.onpointerdown = (e) => start(map, e);
  c.onpointermove = (e) => move(map, e);
  c.onpointerup = () => finish(map);
  c.onpointerleave = () => { map.hover = -1; map.tip.hidden = true; schedule(map); };
  c.ondblclick = () => { map.view = null; schedule(map); };
  c.onkeydown = (e) => keys(map, e);
  map.observer = new ResizeObserver(() => schedule(map));
  map.observer.observe(map.stage);
  return map;
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
    bounds(map);
    grid(map);
    map.sprite = null;
    if (data.sprite && data.sprite.length) createImageBitmap(new Blob([data.sprite], { type: "image/png" })).then((b) => { map.sprite = b; drawGallery(map); });
  }
  map.colour = data.colour.slice();
  map.ids = meta.ids;
  const wanted = meta.selection || [];
  if (map.stamp !== meta.stamp) {
    map.stamp = meta.stamp;
    map.selection = new Set(wanted);
    drawGallery(map);
  }
  drawLegend(map);
  map.canvas.setAttribute("aria-label", `${meta.title}: ${map.n} points. Arrow keys pan, + and − zoom, Escape clears the selection.`);
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
  const span = Math.max(x1 - x0, y1 - y0, 1e-9);
  map.box = { x0: (x0 + x1 - span) / 2, y0: (y0 + y1 - span) / 2, span };
}

function grid(map) {
  map.cells = Array.from({ length: CELL * CELL }, () => []);
  for (let i = 0; i < map.n; i++) map.cells[cell(map, map.xy[2 * i], map.xy[2 * i + 1])].push(i);
}

function cell(map, x, y) {
  const { x0, y0, span } = map.box;
  const a = Math.min(CELL - 1, Math.max(0, Math.floor(((x - x0) / span) * CELL)));
  const b = Math.min(CELL - 1, Math.max(0, Math.floor(((y - y0) / span) * CELL)));
  return b * CELL + a;
}

function view(map) {
  const w = map.stage.clientWidth, h = map.stage.clientHeight;
  if (!map.view) {
    const scale = (Math.min(w, h) - 40) / map.box.span;
    map.view = { scale, x: w / 2 - (map.box.x0 + map.box.span / 2) * scale, y: h / 2 + (map.box.y0 + map.box.span / 2) * scale };
  }
  return map.view;
}

function schedule(map) {
  if (!map.frame) map.frame = requestAnimationFrame(() => { map.frame = 0; draw(map); });
}

function draw(map) {
  if (!map.xy || !map.root.isConnected) return;
  const c = map.canvas, dpr = devicePixelRatio || 1, w = map.stage.clientWidth, h = map.stage.clientHeight;
  if (c.width !== Math.round(w * dpr) || c.height !== Math.round(h * dpr)) { c.width = Math.round(w * dpr); c.height = Math.round(h * dpr); }
  const g = c.getContext("2d"), v = view(map);
  g.setTransform(dpr, 0, 0, dpr, 0, 0);
  g.clearRect(0, 0, w, h);
  const size = map.n > 20000 ? 2 : map.n > 5000 ? 3 : map.n > 1500 ? 4 : 5, half = size / 2;
  const some = map.selection.size > 0, groups = map.meta.palette.length;
  for (let pass = 0; pass < (some ? 2 : 1); pass++) {
    for (let k = 0; k < groups; k++) {
      if (map.hidden.has(k)) continue;
      g.fillStyle = some && pass === 0 ? "#9aa3ab" : map.meta.palette[k];
      g.globalAlpha = some && pass === 0 ? 0.25 : map.n > 5000 ? 0.7 : 0.85;
      for (const i of map.members(k)) {
        if (some && map.selection.has(i) !== (pass === 1)) continue;
        const x = map.xy[2 * i] * v.scale + v.x, y = v.y - map.xy[2 * i + 1] * v.scale;
        if (x > -size && y > -size && x < w + size && y < h + size) g.fillRect(x - half, y - half, size, size);
      }
    }
  }
  g.globalAlpha = 1;
  const accent = getComputedStyle(map.root).getPropertyValue("--st-primary-color") || "#2f6db5";
  if (map.hover >= 0) {
    g.strokeStyle = accent;
    g.lineWidth = 2;
    g.strokeRect(map.xy[2 * map.hover] * v.scale + v.x - size, v.y - map.xy[2 * map.hover + 1] * v.scale - size, 2 * size, 2 * size);
  }
  if (map.path && map.path.length > 1) {
    g.strokeStyle = accent;
    g.lineWidth = 1.5;
    g.beginPath();
    outline(map).forEach(([x, y], k) => (k ? g.lineTo(x, y) : g.moveTo(x, y)));
    g.closePath();
    g.stroke();
  }
  map.count.textContent = some ? `${map.selection.size} of ${map.n} selected` : map.meta.note || `${map.n} points`;
  if (map.pending) { map.timings.push(performance.now() - map.pending); map.pending = 0; }
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
  schedule(map);
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
  } else if (map.path) map.path.push([e.offsetX, e.offsetY]);
  else hover(map, e.offsetX, e.offsetY);
  schedule(map);
}

function finish(map) {
  const path = map.path && map.path.length > 2 ? outline(map) : null, drag = map.drag;
  map.drag = map.path = null;
  if (path) choose(map, inside(map, path));
  else if (drag && !drag.pan && map.hover >= 0) choose(map, [map.hover]);
  schedule(map);
}

function inside(map, path) {
  const v = view(map), found = [];
  const xs = path.map((q) => q[0]), ys = path.map((q) => q[1]);
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

function choose(map, rows) {
  map.selection = new Set(rows);
  drawGallery(map);
  map.send(rows);
  schedule(map);
}

function hover(map, x, y) {
  const v = view(map), px = (x - v.x) / v.scale, py = (v.y - y) / v.scale;
  const at = cell(map, px, py), a = at % CELL, b = Math.floor(at / CELL);
  let best = -1, near = 100 / (v.scale * v.scale);
  for (let q = Math.max(0, b - 1); q <= Math.min(CELL - 1, b + 1); q++) for (let p = Math.max(0, a - 1); p <= Math.min(CELL - 1, a + 1); p++) {
    for (const i of map.cells[q * CELL + p]) {
      const d = (map.xy[2 * i] - px) ** 2 + (map.xy[2 * i + 1] - py) ** 2;
      if (d < near && !map.hidden.has(map.colour[i])) { near = d; best = i; }
    }
  }
  map.hover = best;
  tip(map, x, y);
}

function tip(map, x, y) {
  const i = map.hover;
  map.tip.hidden = i < 0;
  if (i < 0) return;
  const parts = [];
  if (map.sprite) parts.push(picture(map, i, 72));
  parts.push(el("div", {}, map.ids[i]), el("div", {}, map.meta.names[map.colour[i]] ?? ""));
  map.tip.replaceChildren(...parts);
  map.tip.style.left = `${Math.min(x + 14, map.stage.clientWidth - 130)}px`;
  map.tip.style.top = `${Math.min(y + 14, map.stage.clientHeight - 130)}px`;
}

function picture(map, i, size) {
  const { tile, across } = map.meta, c = el("canvas", { width: size, height: size, title: map.ids[i] });
  const g = c.getContext("2d");
  g.imageSmoothingEnabled = false;
  g.drawImage(map.sprite, (i % across) * tile, Math.floor(i / across) * tile, tile, tile, 0, 0, size, size);
  return c;
}

function drawGallery(map) {
  const rows = [...map.selection];
  if (!map.sprite) { map.gallery.replaceChildren(); return; }
  const made = rows.slice(0, SHOWN).map((i) => {
    const c = picture(map, i, 56);
    c.onmouseenter = () => { map.hover = i; schedule(map); };
    c.onclick = () => choose(map, [i]);
    return c;
  });
  if (rows.length > SHOWN) made.push(el("span", {}, `and ${rows.length - SHOWN} more`));
  map.gallery.replaceChildren(...made);
}

function drawLegend(map) {
  map.groupsOf = map.meta.palette.map(() => []);
  for (let i = 0; i < map.n; i++) map.groupsOf[map.colour[i]].push(i);
  map.members = (k) => map.groupsOf[k];
  map.legend.replaceChildren(...map.meta.names.map((name, k) => {
    const dot = el("i", {}), b = el("button", { type: "button", "aria-pressed": "false", title: "show or hide" }, dot, name);
    dot.style.background = map.meta.palette[k];
    b.style.opacity = map.hidden.has(k) ? 0.4 : 1;
    b.onclick = () => { if (map.hidden.has(k)) map.hidden.delete(k); else map.hidden.add(k); drawLegend(map); schedule(map); };
    return b;
  }));
}

function find(map, text) {
  if (!text) return;
  const rows = [];
  for (let i = 0; i < map.n; i++) if (map.ids[i] === text || map.ids[i].endsWith(text)) rows.push(i);
  choose(map, rows);
}

function keys(map, e) {
  const v = view(map), w = map.stage.clientWidth / 2, h = map.stage.clientHeight / 2;
  const pan = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[e.key];
  if (pan) { v.x += pan[0]; v.y += pan[1]; }
  else if (e.key === "+" || e.key === "=") zoom(map, w, h, 1.25);
  else if (e.key === "-") zoom(map, w, h, 0.8);
  else if (e.key === "Escape") choose(map, []);
  else return;
  e.preventDefault();
  schedule(map);
}

function savePng(map) {
  const a = el("a", { download: "map.png", href: map.canvas.toDataURL("image/png") });
  a.click();
}
