// A map of up to a million points on a Canvas 2D: pan, zoom, lasso, box, hover with thumbnail, search, and a gallery of
// what is selected or in view. Only row numbers of a selection go to the server.

import { draw } from "./draw.js";
import { epochStrip, loadEpochs } from "./epochs.js";
import { fileOptions, SAVE, saveMap } from "./figure.js";
import { bounds, colorCells, find, grid } from "./find.js";
import { mixed } from "./grid.js";
import { idsIn } from "./ids.js";
import { drawLegend } from "./legend.js";
import { receive } from "./more.js";
import { glideFromLast } from "./motion.js";
import { loadPartners, partnersButton } from "./partners.js";
import { listen, zoomBy } from "./pointer.js";
import { unpackRows } from "./rows.js";
import { choose, drawPictures, light } from "./selection.js";
import { arranged, columnsFor, loadMorph, morphSlider, move } from "./side_by_side.js";
import { receiveNear } from "./ties.js";
import { tip } from "./tip.js";
import { schedule, seeWhole } from "./view.js";
import { choices, el } from "../shared/dom.js";
import { _, N_ } from "../shared/locale.js";
import { inApp, partOf } from "../shared/part.js";

const STACKED = 360; // pixels of each of several maps below each other
const MODES = { lasso: N_("lasso"), box: N_("box"), pan: N_("pan") };
const ICONS = ["◌", "▭", "✥", "⤢", "▦", "⇄"]; // of the tools where they stand on the stage

export const mount = partOf("_map", build, load, fit, (map) => {
  clearTimeout(map.resting);
  clearTimeout(map.dwelling);
  map.ignore();
});

export default inApp(mount);

/** In a place of another size, where several maps may have other places. */
function fit(map) {
  const { panels } = map.data?.meta ?? {};
  if (panels && columnsFor(map.root.clientWidth, panels.at.length) !== map.columns) {
    map.key = "";
    return load(map, map.data);
  }
  if (!map.moved) map.view = null;
  schedule(map, true);
}

function build() {
  /** @type {any} */
  const map = {
    view: null,
    mode: "lasso",
    picked: [],
    lit: new Uint8Array(0),
    selectedAt: -Infinity,
    hover: -1,
    timings: [],
    path: null,
    fingers: new Map(), // that are down, with their places
    hidden: new Set(),
    turn: 0,
    brought: [], // images that came after the map's own
    wanted: [],
    withImages: true,
  };
  map.redraw = () => draw(map);
  map.canvas = el("canvas", { tabindex: 0, role: "img" });
  map.over = el("canvas", { "aria-hidden": "true", class: "over" });
  map.tip = el("div", { class: "tip", hidden: "" });
  map.kind = el("div", { class: "kind", hidden: "" });
  map.stage = el("div", { class: "stage" }, map.canvas, map.over, map.kind, map.tip);
  map.search = el("input", {
    type: "search",
    placeholder: _("find a sample"),
    "aria-label": _("find a sample by id or text"),
  });
  map.search.onchange = () => find(map, map.search.value.trim());
  map.count = el("span", { role: "status" });
  const button = (text, onclick) => el("button", { type: "button", onclick }, text);
  map.morph = morphSlider(map, () => schedule(map, true));
  map.epochs = epochStrip(map);
  map.images = button(_("images"), () => {
    map.withImages = !map.withImages;
    map.images.setAttribute("aria-pressed", String(map.withImages));
    schedule(map);
  });
  map.images.title = _("images on the map; more appear as you zoom in");
  map.images.setAttribute("aria-pressed", "true");
  map.lines = partnersButton(map);
  map.legend = el("div", { class: "legend", role: "group", "aria-label": _("categories") });
  map.gallery = el("div", {});
  const rail = el(
    "span",
    { class: "rail", role: "toolbar", "aria-label": _("tools of the map") },
    ...choices(MODES, map.mode, (m) => {
      map.mode = m;
    }),
    button(_("whole map"), () => seeWhole(map)),
    map.images,
    map.lines,
  );
  [...rail.children].forEach((tool, k) => {
    tool.dataset.icon = ICONS[k];
    tool.title ||= tool.textContent;
  });
  const nearer = (sign, name, factor) => {
    const b = button(sign, () => zoomBy(map, factor));
    b.setAttribute("aria-label", name);
    return b;
  };
  map.root = el(
    "div",
    { class: "map" },
    el(
      "div",
      { class: "tools" },
      rail,
      map.search,
      el(
        "span",
        { class: "files" },
        button(_("clear"), () => choose(map, [])),
        button(_("files"), () => {
          if (!map.figure?.isConnected) {
            map.figure = fileOptions((wanted) => saveMap(map, wanted), ["png"]);
            map.legend.before(map.figure);
          } else map.figure.remove();
        }),
      ),
      map.morph,
      map.epochs,
      map.count,
    ),
    map.legend,
    map.stage,
    el("div", { class: "zoom" }, nearer("−", _("zoom out"), 0.8), nearer("+", _("zoom in"), 1.25)),
    map.gallery,
  );
  listen(map);
  const save = (e) => {
    if (!map.meta.fits) return;
    e.preventDefault(); // it is heard
    saveMap(map, e.detail);
  };
  window.addEventListener(SAVE, save);
  const ignoreNear = receiveNear(map);
  const ignore = receive(map, () => {
    schedule(map);
    if (map.hover >= 0 && !map.tip.hidden) tip(map, map.hover);
  });
  map.ignore = () => {
    ignore();
    ignoreNear();
    window.removeEventListener(SAVE, save);
  };
  return map;
}

function load(map, data) {
  const meta = { ...data.meta };
  map.meta = meta;
  map.data = meta.panels ? data : null;
  const isNew = map.key !== meta.content;
  let moves = [];
  if (meta.panels) {
    if (isNew) map.columns = columnsFor(map.root.clientWidth, meta.panels.at.length);
    ({ panels: meta.panels, moves } = arranged(meta.panels, map.columns));
  }
  map.color = data.color.slice();
  map.root.style.setProperty(
    "--map-height",
    `${meta.panels?.lines ? STACKED * meta.panels.lines : meta.height || 520}px`,
  );
  if (isNew) {
    map.key = meta.content;
    map.view = null;
    map.moved = false;
    map.xy = new Float32Array(data.xy.slice().buffer);
    map.n = map.xy.length / 2;
    map.rows = meta.panels ? meta.panels.rows : map.n;
    loadMorph(map, data.target);
    for (const places of [map.xy, map.home, map.target]) move(places, map.rows, moves);
    map.lit = new Uint8Array(map.n);
    map.picked = [];
    map.stamp = undefined;
    map.ids = idsIn(data.ids, map.rows);
    map.pictured = data.pictured?.length ? new Uint32Array(data.pictured.slice().buffer) : null;
    map.mixed = mixed(map.n);
    bounds(map, loadEpochs(map, data.frames));
    grid(map);
    if (map.epochs.hidden || map.epochs.at === map.meta.frameNames.length - 1) glideFromLast(map);
    map.sprite = null;
    map.brought = [];
    map.wanted = [];
    if (data.thumbnails.length) {
      createImageBitmap(new Blob([data.thumbnails], { type: "image/png" })).then((b) => {
        map.sprite = b;
        drawPictures(map);
        schedule(map, true);
      });
    }
  } else colorCells(map);
  map.root.classList.toggle("fits", Boolean(meta.fits));
  map.root.classList.toggle("several", Boolean(meta.panels));
  map.root.classList.toggle("stacked", Boolean(meta.panels?.lines));
  map.root.style.setProperty("--map-shape", String(map.box.wide / map.box.high));
  map.gallery.hidden = meta.gallery === false;
  map.images.hidden = !meta.medoids?.length;
  if (String(map.names) !== String(meta.names)) map.hidden.clear(); // of other categories
  map.names = meta.names;
  if (map.stamp !== meta.stamp) {
    map.stamp = meta.stamp;
    light(
      map,
      unpackRows(meta.selection).filter((i) => i < map.rows),
    );
  }
  loadPartners(map, data.partners);
  drawLegend(map);
  map.canvas.setAttribute(
    "aria-label",
    _(
      "{title}: {rows} points. Arrow keys pan, plus and minus or Ctrl and the wheel zoom, n and p walk through the " +
        "points, Enter selects, a selects all, Escape clears.",
      { title: meta.title, rows: map.rows },
    ),
  );
  schedule(map, true);
}
