// The elements of the part, and what its buttons do.

import { restart, speedOf, step, tick } from "./course.js";
import { report, saveCourse, savePicture } from "./save.js";
import { choices, el } from "../shared/dom.js";
import { buildFurther } from "../shared/further_knobs.js";
import { buildLesson } from "../shared/lesson.js";
import { _ } from "../shared/locale.js";

const METHODS = { simsiam: "SimSiam", byol: "BYOL" };
const SEEDS = 9999;

/**
 * @param {any} parent
 */
export function build(parent) {
  /** @type {any} */
  const part = { running: false, earlier: [], due: 0 };
  const choose = (field) => (value) => {
    part[field] = value;
    again(part);
  };
  part.lesson = buildLesson((pressed) => report(part, pressed));
  part.further = buildFurther({
    turn: () => {
      part.dragging = true;
      tick(part);
    },
    told: () => {
      part.dragging = false;
      report(part);
    },
  });
  part.canvas = el("canvas", { class: "ring", role: "img" });
  part.canvas.style.cursor = "default";
  part.canvas.style.touchAction = "auto";
  part.curves = el("canvas", { class: "ringcurves", role: "img" });
  part.note = el("p", { class: "hint" });
  part.methods = el("span", { class: "group" }, ...choices(METHODS, "simsiam", choose("method")));
  part.boxes = {
    predictor: checkbox(choose("predictor")),
    stopGradient: checkbox(choose("stopGradient")),
  };
  part.switches = el(
    "div",
    { class: "bar" },
    part.methods,
    el("label", {}, part.boxes.predictor, " ", _("Predictor")),
    el("label", {}, part.boxes.stopGradient, " ", _("Stop-gradient")),
  );
  part.further.root.classList.add("later"); // on a narrow screen below the circle
  const view = el("div", { class: "view" }, part.switches, buttonsOf(part), part.further.root, bodyOf(part));
  part.root = el("div", { class: "lab" }, el("div", { class: "frame" }, part.lesson.root, view));
  parent.append(part.root);
  part.observer = new ResizeObserver(() => tick(part));
  part.observer.observe(part.root);
  return part;
}

function checkbox(then) {
  const box = el("input", { type: "checkbox" });
  box.onchange = () => then(box.checked);
  return box;
}

/** Run, steps, seeds, speed and what is saved. */
function buttonsOf(part) {
  const button = (text, onclick) => el("button", { type: "button", onclick }, text);
  part.run = button(_("Run"), () => {
    part.running = !part.running;
    show(part);
    tick(part);
  });
  const one = () => {
    part.running = false;
    step(part);
    show(part);
    tick(part);
  };
  part.seedField = el("input", { type: "number", min: 0, max: SEEDS, step: 1, "aria-label": _("seed") });
  part.seedField.onchange = () => plant(part, part.seedField.valueAsNumber);
  part.speedSlider = el("input", { type: "range", min: 0, max: 1000, step: 1, "aria-label": _("steps per second") });
  part.speedSlider.oninput = () => show(part);
  part.speedSlider.onchange = () => report(part);
  part.speedShown = el("output", {});
  return el(
    "div",
    { class: "bar" },
    part.run,
    button(_("Step"), one),
    button(_("Start again"), () => again(part)),
    button(_("Another seed"), () => plant(part, (part.seed + 1) % (SEEDS + 1))),
    el("label", {}, _("seed"), " ", part.seedField),
    el("label", {}, _("steps per second"), " ", part.speedSlider, " ", part.speedShown),
    el("span", { class: "space" }),
    el(
      "span",
      { class: "group" },
      button("PNG", () => savePicture(part)),
      button("CSV", () => saveCourse(part)),
    ),
  );
}

function bodyOf(part) {
  const about = _(
    "Points: both views of an image, joined by a line. Circles on the inner ring: what the predictor makes of them.",
  );
  return el(
    "div",
    { class: "body" },
    part.canvas,
    el("div", {}, part.note, part.curves, el("p", { class: "hint" }, about)),
  );
}

/** Another seed: other images, views and weights. */
function plant(part, seed) {
  if (Number.isFinite(seed)) part.seed = Math.min(SEEDS, Math.max(0, Math.round(seed)));
  again(part);
}

/** From the start, as chosen; it runs on where it ran. */
function again(part) {
  restart(part);
  show(part);
  tick(part);
  report(part);
}

/**
 * The controls as they stand.
 *
 * @param {any} part
 */
export function show(part) {
  for (const button of part.methods.children)
    button.setAttribute("aria-pressed", String(button.dataset.key === part.method));
  for (const [name, box] of Object.entries(part.boxes)) box.checked = part[name];
  part.run.textContent = part.running ? _("Pause") : _("Run");
  part.seedField.value = String(part.seed);
  part.speedShown.textContent = String(Number(speedOf(part).toPrecision(3)));
  for (const { knob, root } of part.further.rows) {
    const isUsed = { momentum: part.method === "byol" && part.stopGradient, predictor_rate: part.predictor }[knob.name];
    root.style.display = isUsed === false ? "none" : "";
  }
}
