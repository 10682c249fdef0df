// A map of up to 50,000 points on a Canvas 2D: pan, zoom, lasso, box, hover with thumbnail, search,
// and a gallery of what is selected. Only row numbers of a selection go to the server.

import { unpack } from "../shared/transport.js";
import { savePng, schedule } from "./draw.js";
import { choices, el } from "../shared/dom.js";
import { bounds, find, grid, mixed } from "./find.js";
import { loadMorph, morphSlider } from "./side_by_side.js";
import { listen } from "./pointer.js";
import { drawGallery, pictureOf } from "../gallery/grid.js";

const FEW = 500; // rows that go back as a list; more go as one bit per point
const MODES = { lasso: "lasso", box: "box", pan: "pan" };

export default function (component) {
  const { parentElement, setStateValue } = component,
    data = unpack(component.data);
  const map = parentElement._map || (parentElement._map = build(parentElement));
  map.send = (rows) => setStateValue("selection", { ...packRows(rows, map.rows), turn: ++map.turn });
  load(map, data);
  schedule(map, true);
  return () => {
    cancelAnimationFrame(map.frame);
    map.observer.disconnect();
    map.root.remove();
    parentElement._map = null;
  };
}

function build(parent) {
  const map = {
    view: null,
    mode: "lasso",
    picked: [],
    lit: new Uint8Array(0),
    hover: -1,
    timings: [],
    path: null,
    hidden: new Set(),
    turn: 0,
  };
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
  map.root = el(
    "div",
    { class: "map" },
    el(
      "div",
      { class: "tools" },
      el(
        "span",
        { class: "modes" },
        ...choices(MODES, map.mode, (m) => {
          map.mode = m;
        }),
      ),
      button("whole map", () => {
        map.view = null;
        schedule(map, true);
      }),
      map.search,
      button("clear", () => choose(map, [])),
      button("PNG", () => savePng(map)),
      map.morph,
      map.count,
    ),
    map.legend,
    map.stage,
    map.gallery,
  );
  parent.append(map.root);
  listen(map);
  map.observer = new ResizeObserver(() => schedule(map, true));
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
    map.rows = meta.panels ? meta.panels.rows : map.n;
    loadMorph(map, data.target);
    map.lit = new Uint8Array(map.n);
    map.picked = [];
    map.stamp = undefined;
    bounds(map);
    grid(map);
    map.order = mixed(map.n);
    map.sprite = null;
    if (data.sprite && data.sprite.length) {
      createImageBitmap(new Blob([data.sprite], { type: "image/png" })).then((b) => {
        map.sprite = b;
        drawPictures(map);
      });
    }
  }
  map.color = data.color.slice();
  if (String(map.names) !== String(meta.names)) map.hidden.clear(); // of other categories
  map.names = meta.names;
  map.ids = meta.ids;
  if (map.stamp !== meta.stamp) {
    map.stamp = meta.stamp;
    light(
      map,
      (meta.selection || []).filter((i) => i < map.rows),
    );
  }
  drawLegend(map);
  map.canvas.setAttribute(
    "aria-label",
    `${meta.title}: ${map.rows} points. Arrow keys pan, plus and minus zoom, n and p walk through the points, Enter selects, a selects all, Escape clears.`,
  );
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

function light(map, rows) {
  map.picked = rows;
  map.lit.fill(0);
  for (const row of rows) for (let i = row; i < map.n; i += map.rows) map.lit[i] = 1;
  drawPictures(map);
  schedule(map, true);
}

export function choose(map, rows) {
  map.missed = "";
  light(map, rows);
  map.send(rows);
}

export function picture(map, i, size) {
  return pictureOf(map.sprite, map.meta, i % map.rows, size, map.ids[i % map.rows] ?? "");
}

function drawPictures(map) {
  drawGallery(map.gallery, map.sprite ? map.picked : [], {
    make: (i) => picture(map, i, 56),
    name: (i) => map.ids[i] ?? String(i),
    point: (i) => {
      map.hover = i;
      schedule(map);
    },
    click: (i) => choose(map, [i]),
  });
}

function drawLegend(map) {
  map.groups = map.meta.palette.map(() => []);
  for (let i = 0; i < map.n; i++) map.groups[map.color[i]].push(i);
  map.legend.hidden = map.meta.names.length < 2;
  map.legend.replaceChildren(
    ...map.meta.names.map((name, k) => {
      const dot = el("i", {}),
        shown = !map.hidden.has(k);
      const b = el("button", { type: "button", "aria-pressed": String(shown), title: "show or hide" }, dot, name);
      dot.style.background = map.meta.palette[k];
      b.onclick = () => {
        if (shown) map.hidden.add(k);
        else map.hidden.delete(k);
        drawLegend(map);
        schedule(map, true);
      };
      return b;
    }),
  );
}
