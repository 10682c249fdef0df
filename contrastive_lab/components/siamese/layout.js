// The elements of the part, and what its buttons do.

import { restart, speedOf, step, tick } from "./course.js";
import { report, saveCourse, savePicture } from "./save.js";
import { buildCourse } from "../shared/course.js";
import { choices, el, press } from "../shared/dom.js";
import { buildFurther } from "../shared/further_knobs.js";
import { buildLesson } from "../shared/lesson.js";
import { _ } from "../shared/locale.js";
import { footOf, playButtons, setting, showRunning, stageOf } from "../shared/stage.js";

const METHODS = { simsiam: "SimSiam", byol: "BYOL" };
const SEEDS = 9999;

export function build() {
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
  part.methods = el("span", { class: "group" }, ...choices(METHODS, "simsiam", choose("method")));
  part.boxes = { predictor: checkbox(choose("predictor")), stopGradient: checkbox(choose("stopGradient")) };
  part.switches = el(
    "div",
    { class: "bar" },
    part.methods,
    el("label", {}, part.boxes.predictor, " ", _("Predictor")),
    el("label", {}, part.boxes.stopGradient, " ", _("Stop-gradient")),
  );
  const play = playOf(part),
    about = _(
      "Points: both views of an image, joined by a line; a ring: a target that does not move. " +
        "Circles on the inner ring: the predictor's outputs for them.",
    ),
    saves = { PNG: () => savePicture(part), CSV: () => saveCourse(part) },
    foot = footOf(() => report(part, { next: true }), saves);
  part.root = stageOf(
    [part.canvas, play, el("p", { class: "status" }, about)],
    [part.lesson.root, part.switches, ...courseOf(part), settingsOf(part), foot],
  );
  return part;
}

function checkbox(then) {
  const box = el("input", { type: "checkbox" });
  box.onchange = () => then(box.checked);
  return box;
}

/** What stands in the middle: the buttons, and the meter of the collapse. */
function playOf(part) {
  const toggle = () => {
    part.running = !part.running;
    show(part);
    tick(part);
  };
  const one = () => {
    part.running = false;
    step(part);
    show(part);
    tick(part);
  };
  const then = { toggle, step: one, restart: () => again(part) },
    play = playButtons(then, _("Start again"), _("16 images, no negatives: do they stay apart?"));
  part.run = play.run;
  part.meter = el("meter", { min: 0, max: 1, low: 0.1, "aria-label": _("spread") });
  part.spreadShown = el("strong", {});
  play.root.append(el("div", { class: "spread" }, part.meter, part.spreadShown));
  return play.root;
}

/** The course in words and as curves. */
function courseOf(part) {
  const names = [[_("spread")], [_("mean resultant length")], [_("loss")]];
  part.note = el("p", { class: "hint" });
  part.course = buildCourse(names, _("spread, mean resultant length and loss over the steps"));
  return [part.note, part.course.root];
}

/** Seed, speed, and the rates of the training. */
function settingsOf(part) {
  part.seedField = el("input", { type: "number", min: 0, max: SEEDS, step: 1 });
  part.seedField.onchange = () => plant(part, part.seedField.valueAsNumber);
  part.speedSlider = el("input", { type: "range", min: 0, max: 1000, step: 1 });
  part.speedSlider.oninput = () => show(part);
  part.speedSlider.onchange = () => report(part);
  part.speedShown = el("output", {});
  const another = () => plant(part, (part.seed + 1) % (SEEDS + 1));
  return el(
    "div",
    { class: "settings" },
    setting(_("seed"), part.seedField),
    el("button", { type: "button", onclick: another }, _("Another seed")),
    setting(_("steps per second"), part.speedSlider, part.speedShown),
    part.further.root,
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
  press(part.methods.children, part.method);
  for (const [name, box] of Object.entries(part.boxes)) box.checked = part[name];
  showRunning(part.run, part.running);
  part.seedField.value = String(part.seed);
  part.speedShown.textContent = String(Number(speedOf(part).toPrecision(3)));
  for (const { knob, root } of part.further.rows) {
    const isUsed = { momentum: part.method === "byol" && part.stopGradient, predictor_rate: part.predictor }[knob.name];
    root.style.display = isUsed === false ? "none" : "";
  }
}
