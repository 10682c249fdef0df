// The elements of the view of a loss over dimensions, and what its buttons and keys do.

import { DIRECTIONS } from "./histogram.js";
import { cellAt, cellByKey } from "./matrices.js";
import { choices, el } from "../shared/dom.js";
import { buildFurther, putFurther } from "../shared/further_knobs.js";
import { buildLesson } from "../shared/lesson.js";
import { N_ } from "../shared/locale.js";
import { tellChosen } from "../shared/part.js";
import { forwardOf, stageOf } from "../shared/stage.js";

const SHADES = { value: N_("Values"), part: N_("In the loss") };
const VIEWS = { 0: N_("View a"), 1: N_("View b") };

export function buildView() {
  /** @type {any} */
  const lab = {
    shade: "value",
    which: 0,
    direction: "worst",
    stale: true,
    samples: matrixOf(),
    dimensions: matrixOf(),
  };
  lab.schedule = (stale) => schedule(lab, stale);
  lab.further = buildFurther({
    turn: () => {
      lab.dragging = true;
      putFurther(lab.further, lab.knobs);
      schedule(lab, true);
    },
    told: () => report(lab),
  });
  lab.lesson = buildLesson((pressed) => report(lab, pressed));
  lab.sentence = el("p", { class: "sentence", role: "status", "aria-live": "polite" });
  lab.bar = el("div", { "aria-hidden": "true" });
  lab.bar.style.cssText = "display:flex;height:14px;border-radius:4px;overflow:hidden";
  lab.table = el("table", {});
  const pick = (field) => (key) => {
    lab[field] = field === "which" ? Number(key) : key;
    schedule(lab, true);
  };
  const group = (names, first, field) => el("span", { class: "group" }, ...choices(names, first, pick(field)));
  lab.viewBar = group(VIEWS, "0", "which");
  lab.shadeBar = group(SHADES, "value", "shade");
  lab.directionBar = group(DIRECTIONS, "worst", "direction");
  const shown = el("div", { class: "bar" }, lab.shadeBar, lab.directionBar, lab.viewBar);
  lab.forward = forwardOf(() => report(lab, { go: lab.meta.forward.number }));
  lab.root = stageOf(
    [sideOf(lab.dimensions, shown), sideOf(lab.samples)],
    [lab.lesson.root, lab.further.root, lab.sentence, lab.bar, lab.table, el("div", { class: "foot" }, lab.forward)],
  );
  lab.root.querySelector(".picture").classList.add("pair");
  for (const matrix of [lab.samples, lab.dimensions]) listen(lab, matrix);
  return lab;
}

/** A matrix's elements; `values` (size·size) is what it shows. */
function matrixOf() {
  const canvas = el("canvas", { class: "matrix", tabindex: 0, role: "img" });
  const parts = {
    canvas,
    title: el("h2", {}),
    legend: el("div", { class: "legend" }),
    hint: el("p", { class: "hint", "aria-live": "polite" }),
  };
  return { ...parts, size: 0, values: null, hover: null, buffer: null };
}

function sideOf(matrix, ...choice) {
  return el("div", {}, matrix.title, ...choice, matrix.canvas, matrix.legend, matrix.hint);
}

function listen(lab, matrix) {
  const light = (cell) => {
    matrix.hover = cell;
    schedule(lab);
  };
  const { canvas } = matrix;
  canvas.onpointermove = canvas.onpointerdown = (e) => light(cellAt(matrix, e));
  canvas.onpointerleave = (e) => {
    if (e.pointerType !== "touch") light(null);
  }; // a finger that was lifted still points
  canvas.onkeydown = (e) => {
    const cell = cellByKey(matrix, e.key);
    if (!cell) return;
    e.preventDefault();
    light(cell);
  };
}

/** A value was let go, or something was pressed in a lesson: the server hears of all of it. */
function report(lab, pressed = {}) {
  tellChosen(lab, { of: lab.meta.name, ...pressed });
  schedule(lab);
}

/** One redraw at the next frame; `stale`: terms or matrices have to be computed again. */
function schedule(lab, stale = false) {
  lab.stale ||= stale;
  if (lab.frame) return;
  lab.frame = requestAnimationFrame(() => {
    lab.frame = 0;
    lab.redraw?.();
  });
}
