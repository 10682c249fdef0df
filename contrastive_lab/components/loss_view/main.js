// The Loss Lab: matrix, one anchor's bars, and panels, all redrawn in the browser while a knob is
// dragged. The server hears of a value when it is let go.

import { unpack } from "../shared/transport.js";
import { readSecond } from "./second.js";
import { ORDERS } from "./order.js";
import { choices, el, theme } from "../shared/dom.js";
import { fromSlider, knobField, setKnob, toSlider } from "../shared/knob.js";
import { cellAt, drawBars, drawFigures, drawMatrix, isHinge, paintMatrix, ranked, saveCsv, savePng } from "./draw.js";
import { drawPanel, openPanel } from "./panels.js";
import { evaluate, make } from "../shared/kernels.js";

export const VIEWS = { weight: "Weight on each pair", score: "Similarity", grad: "Gradient", mask: "Who is what" };
export const PANELS = {
  none: "Nothing more",
  scores: "Margin",
  grads: "Gradients",
  curves: "Over the knob",
  formula: "Formula",
  two: "Two settings",
};

export default function (component) {
  const { parentElement, setStateValue } = component,
    data = unpack(component.data);
  const lab = parentElement._lab || (parentElement._lab = build(parentElement, data.meta.start || {}));
  lab.send = setStateValue;
  if (lab.key !== data.meta.key) load(lab, data);
  else applyKernel(lab, data.meta);
  lab.fixed = lab.kernel ? null : library(lab.M, lab.n, lab.w, data, data.meta);
  readSecond(lab, data);
  schedule(lab, true);
  return () => {
    cancelAnimationFrame(lab.frame);
    lab.resize.disconnect();
    lab.root.remove();
    lab.empty.remove();
    parentElement._lab = null;
  };
}

/** `start`: what an address asks for; what it doesn't name is as at first. */
function build(parent, start) {
  const known = (names, name, otherwise) => (name in names ? name : otherwise);
  const lab = {
    view: known(VIEWS, start.view, "weight"),
    panel: known(PANELS, start.panel, "none"),
    order: known(ORDERS, start.order, "group"),
    overlay: Boolean(start.masks),
    second: { choice: start.second || "same", value: start.second_value ?? null },
    anchor: 0,
    hover: null,
    timings: [],
    stale: true,
  };
  lab.slider = el("input", { type: "range", min: 0, max: 1000, step: 1 });
  lab.readout = knobField(
    () => lab.meta.knob,
    (v) => {
      lab.slider.value = toSlider(lab.meta.knob, v);
      drag(lab, v, 0);
      report(lab);
    },
  );
  lab.knobName = el("span", {});
  for (const name of ["loss", "effective", "own", "ownEffective"]) lab[name] = el("dd", { class: name });
  lab.pull = el("span", { class: "pull" });
  lab.bound = el("small", {});
  for (const name of ["effective", "own", "ownEffective", "pull"]) lab[`${name}Title`] = el("dt", {});
  lab.matrix = el("canvas", { class: "matrix", tabindex: 0, role: "img" });
  lab.bars = el("canvas", { class: "bars", tabindex: 0, role: "img" });
  lab.hint = el("p", { class: "hint", "aria-live": "polite" });
  lab.faces = el("canvas", { class: "faces", "aria-hidden": "true" });
  lab.barTitle = el("h4", {});
  const turn = (text, pages) =>
    el(
      "button",
      {
        type: "button",
        onclick: () => {
          lab.barFrom += pages * lab.barRows.length;
          schedule(lab);
        },
      },
      text,
    );
  lab.turns = el("span", { class: "group turns" }, turn("nearer", -1), turn("farther", 1));
  lab.legend = el("div", { class: "legend" });
  lab.panelBox = el("div", { class: "panel", hidden: "" });
  const pick = (field) => (key) => {
    lab[field] = key;
    schedule(lab, true);
    report(lab);
  };
  lab.orderBar = el("span", { class: "group" }, ...choices(ORDERS, lab.order, pick("order")));
  lab.viewBar = el("span", { class: "group" }, ...choices(VIEWS, lab.view, pick("view")));
  lab.over = el(
    "button",
    {
      type: "button",
      "aria-pressed": String(lab.overlay),
      onclick: () => {
        lab.overlay = !lab.overlay;
        lab.over.setAttribute("aria-pressed", String(lab.overlay));
        schedule(lab, true);
        report(lab);
      },
    },
    "masks over it",
  );
  const figure = (title, value) => el("div", {}, title, value);
  lab.root = el(
    "div",
    { class: "lab" },
    el("div", { class: "bar" }, el("div", { class: "knob" }, lab.knobName, lab.slider, lab.readout)),
    el(
      "dl",
      { class: "figures" },
      figure(el("dt", {}, "Loss of the batch"), lab.loss),
      ...["effective", "own", "ownEffective"].map((name) => figure(lab[`${name}Title`], lab[name])),
      figure(lab.pullTitle, el("dd", {}, lab.pull, lab.bound)),
    ),
    el(
      "div",
      { class: "bar" },
      lab.viewBar,
      lab.over,
      lab.orderBar,
      el("span", { class: "space" }),
      el(
        "span",
        { class: "group" },
        el(
          "button",
          {
            type: "button",
            title: "the matrix, the bars and the open panel as a picture",
            onclick: () => savePng(lab),
          },
          "PNG",
        ),
        el(
          "button",
          { type: "button", title: "every pair with its score, weight and gradient", onclick: () => saveCsv(lab) },
          "CSV",
        ),
      ),
    ),
    el(
      "div",
      { class: "body" },
      el("div", {}, lab.matrix, lab.legend, el("div", { class: "told" }, lab.faces, lab.hint)),
      el("div", {}, lab.barTitle, lab.bars, lab.turns),
    ),
    el(
      "div",
      { class: "bar panels", role: "group", "aria-label": "More" },
      ...(lab.panelButtons = choices(PANELS, lab.panel, (key) => {
        if (key === "grads") show(lab, "grad"); // pull and push of every pair belong to this panel
        if (key === "scores" && isHinge(lab) && lab.view !== "grad") show(lab, "weight"); // active hinges are marked there
        openPanel(lab, key);
        schedule(lab, true);
        report(lab);
      })),
    ),
    lab.panelBox,
  );
  lab.empty = el("div", { class: "empty", hidden: "", role: "status" });
  parent.append(lab.empty, lab.root);
  listen(lab);
  lab.resize = new ResizeObserver(() => schedule(lab));
  lab.resize.observe(lab.root);
  return lab;
}

function show(lab, view) {
  lab.view = view;
  for (const b of lab.viewBar.children) b.setAttribute("aria-pressed", String(b.dataset.key === view));
}

function listen(lab) {
  const { slider, matrix, bars } = lab;
  slider.oninput = (e) => drag(lab, fromSlider(lab.meta.knob, slider.value), e.timeStamp);
  // A held arrow key changes the slider again and again: it counts as one drag until it is let go.
  slider.onkeydown = (e) => {
    if (e.key !== "Tab") lab.dragging = lab.byKey = true;
  };
  slider.onkeyup = slider.onblur = () => {
    if (lab.byKey) {
      lab.byKey = false;
      report(lab);
    }
  };
  slider.onchange = () => {
    if (!lab.byKey) report(lab);
  };
  const leave = (e) => {
    if (e.pointerType !== "touch") light(lab, null);
  }; // a finger that was lifted still points
  matrix.onpointermove = matrix.onpointerdown = (e) => light(lab, cellAt(lab, e));
  matrix.onpointerleave = bars.onpointerleave = leave;
  matrix.onclick = (e) => {
    const c = cellAt(lab, e);
    if (c && c[0] !== null) choose(lab, c[0], true);
  };
  matrix.onkeydown = (e) => matrixKeys(lab, e);
  matrix.onkeyup = () => {
    if (lab.movedByKey) {
      lab.movedByKey = false;
      report(lab);
    }
  };
  bars.onpointermove = bars.onpointerdown = (e) => {
    const j = lab.barRows[Math.floor((e.offsetY / bars.clientHeight) * lab.barFit)];
    light(lab, j === undefined ? null : [lab.anchor, j]);
  };
  bars.onclick = () => follow(lab);
  bars.onkeydown = (e) => {
    if (e.key === "Enter") return follow(lab);
    const all = ranked(lab),
      fit = lab.barRows.length,
      step = { ArrowDown: 1, ArrowUp: -1, PageDown: fit, PageUp: -fit }[e.key];
    if (!step || !fit) return;
    e.preventDefault();
    const to = Math.min(all.length - 1, Math.max(0, (lab.hover ? all.indexOf(lab.hover[1]) : -1) + step));
    lab.barFrom = Math.min(to, Math.max(lab.barFrom, to - fit + 1));
    light(lab, [lab.anchor, all[to]]);
  };
  bars.onwheel = (e) => {
    // only while there is more to see, so that the page still scrolls
    const before = lab.barFrom,
      to = Math.max(0, Math.min(ranked(lab).length - lab.barRows.length, before + Math.sign(e.deltaY) * 3));
    if (to === before) return;
    e.preventDefault();
    lab.barFrom = to;
    schedule(lab);
  };
}

/** The candidate that is lit becomes the anchor, where it is one. */
function follow(lab) {
  const row = lab.hover && lab.hover[1] !== null ? lab.meta.names.indexOf(lab.meta.columnNames[lab.hover[1]]) : -1;
  if (row < 0) return;
  choose(lab, row, true);
  light(lab, [row, null]);
}

export function matrixKeys(lab, e) {
  if (e.key === "Enter") return follow(lab);
  const rows = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -lab.n, End: lab.n }[e.key];
  const columns = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
  if (!rows && !columns) return;
  e.preventDefault();
  const move = (order, at, step) => order[Math.min(order.length - 1, Math.max(0, order.indexOf(at) + step))];
  if (rows) {
    choose(lab, move(lab.rows, lab.anchor, rows), false);
    lab.movedByKey = true;
  }
  light(lab, [
    lab.anchor,
    columns ? move(lab.columns, lab.hover ? lab.hover[1] : lab.columns[0], columns) : lab.hover ? lab.hover[1] : null,
  ]);
}

/** The bytes of a batch are read once; its knobs may come again and again. */
function load(lab, data) {
  const meta = data.meta;
  Object.assign(lab, {
    key: meta.key,
    n: meta.n,
    w: meta.w,
    anchor: Math.min(meta.anchor || 0, Math.max(0, meta.n - 1)),
  });
  lab.S = new Float32Array(data.scores.slice().buffer);
  lab.M = data.mask.slice();
  Object.assign(lab, { out: null, sprite: null, cache: {}, hover: null, barFrom: 0 });
  if (data.sprite && data.sprite.length) {
    createImageBitmap(new Blob([data.sprite], { type: "image/png" })).then((b) => {
      lab.sprite = b;
      schedule(lab, true);
    });
  }
  lab.image = new ImageData(Math.max(1, lab.w), Math.max(1, lab.n));
  lab.pixels = new Uint32Array(lab.image.data.buffer);
  lab.buffer = new OffscreenCanvas(Math.max(1, lab.w), Math.max(1, lab.n));
  let low = Infinity,
    high = -Infinity;
  for (let k = 0; k < lab.S.length; k++) {
    if (lab.M[k] === 0 || lab.M[k] === 3) continue;
    if (lab.S[k] < low) low = lab.S[k];
    if (lab.S[k] > high) high = lab.S[k];
  }
  lab.range = low <= high ? [low, high] : [0, 1];
  lab.faces.hidden = !(meta.rowThumb || []).length;
  applyKernel(lab, meta);
  openPanel(lab, lab.panel);
}

function applyKernel(lab, meta) {
  lab.meta = meta;
  const { knob, kernel, reason } = meta;
  lab.empty.hidden = !reason;
  lab.empty.textContent = reason || "";
  const symbol = knob ? knob.label.split(",")[0] : "the knob",
    hinge = kernel && kernel.family === "hinge";
  const words = { scores: hinge ? "Margin" : "Histogram", curves: `Over ${symbol}` };
  for (const b of lab.panelButtons) b.textContent = words[b.dataset.key] || PANELS[b.dataset.key];
  if (lab.dragging) return; // an older answer may not move what is in the hand
  lab.kernel = kernel ? { ...kernel } : null;
  lab.slider.disabled = !knob;
  lab.knobName.textContent = knob ? knob.label : "no knob to drag";
  lab.slider.setAttribute("aria-label", lab.knobName.textContent);
  lab.readout.setAttribute("aria-label", `${lab.knobName.textContent}, as a number`);
  lab.readout.disabled = !knob;
  if (!knob) {
    lab.readout.value = "";
    return;
  }
  lab.slider.value = toSlider(knob, knob.value);
  setKnob(lab, knob.value);
}

/** What the library computed for a loss that has no kernel here: `pair`, `grad`, `loss` as bytes. */
export function library(M, n, w, data, meta) {
  if (!data.pair || !data.pair.length) return null;
  const floats = (bytes) => new Float32Array(bytes.slice().buffer);
  const out = make(n, w);
  Object.assign(out, {
    pair: floats(data.pair),
    grad: floats(data.grad),
    loss: floats(data.loss),
    value: meta.loss,
    valid: meta.reason ? 0 : 1,
  });
  for (let i = 0; i < n; i++) {
    const at = i * w;
    let sum = 0,
      entropy = 0;
    out.weight[i] = Number(M.subarray(at, at + w).includes(1));
    for (let k = at; k < at + w; k++)
      if (M[k] === 2) {
        out.negatives[i]++;
        sum += out.pair[k];
      }
    for (let k = at; k < at + w; k++) {
      const p = M[k] === 2 ? out.pair[k] / (sum || 1) : 0;
      if (p > 0) entropy -= p * Math.log(p);
    }
    out.effective[i] = sum > 0 ? Math.exp(entropy) : 0;
  }
  return out;
}

/** The knob moves in the browser alone; `report` is what tells the server. */
export function drag(lab, v, stamp) {
  lab.pending ||= stamp;
  lab.dragging = true;
  setKnob(lab, v);
  schedule(lab, true);
}

export function report(lab) {
  lab.dragging = false;
  lab.send("chosen", {
    of: lab.meta.name,
    value: lab.meta.knob ? lab.value : null,
    anchor: lab.anchor,
    view: lab.view,
    panel: lab.panel,
    order: lab.order,
    masks: Boolean(lab.overlay),
    second: lab.second.choice,
    second_value: lab.second.value,
  });
}

export function choose(lab, row, tell) {
  if (row === lab.anchor) return;
  Object.assign(lab, { anchor: row, barFrom: 0 });
  if (tell) report(lab);
  schedule(lab);
}

export function light(lab, cell) {
  lab.hover = cell;
  schedule(lab);
}

/** One redraw at the next frame; `stale`: the loss or the matrix has to be computed again. */
export function schedule(lab, stale) {
  lab.stale ||= Boolean(stale);
  if (lab.frame) return;
  lab.frame = requestAnimationFrame(() => {
    lab.frame = 0;
    draw(lab);
  });
}

function draw(lab) {
  if (!lab.S || !lab.root.isConnected) return;
  if (lab.stale) {
    if (lab.kernel) lab.out = evaluate(lab.S, lab.M, lab.n, lab.w, lab.kernel, lab.out);
    else lab.out = lab.fixed;
    paintMatrix(lab);
  }
  Object.assign(lab, theme(lab.root));
  drawFigures(lab);
  drawMatrix(lab);
  drawBars(lab);
  drawPanel(lab);
  lab.stale = false;
  if (lab.pending) {
    lab.timings.push(performance.now() - lab.pending);
    lab.pending = 0;
  }
}
