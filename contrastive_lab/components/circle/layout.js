// The elements of the circle, and what its buttons do.

import { tick } from "./frame.js";
import { listen, runOrPause, stepOnce } from "./pointer.js";
import { MOST_GROUPS, restart, stepSize, turnTowers } from "./points.js";
import { report, saveCircle, savePicture } from "./save.js";
import { buildCourse } from "../shared/course.js";
import { el, isTouched } from "../shared/dom.js";
import { buildFurther, putFurther } from "../shared/further_knobs.js";
import { buildKnob, setKnob } from "../shared/knob.js";
import { buildLesson } from "../shared/lesson.js";
import { PULL, PUSH, mark } from "../shared/push_pull.js";
import { _ } from "../shared/locale.js";
import { footOf, playButtons, setting, stageOf } from "../shared/stage.js";

/** @param {CircleState} ring */
export function showStepSize(ring) {
  ring.speedShown.textContent = String(Number(stepSize(ring).toPrecision(2)));
}

export function build() {
  /** @type {any} */
  const ring = { running: false, step: 0, scatter: 0, timings: [], value: 1, held: -1, chosen: -1 };
  ring.canvas = el("canvas", { class: "ring", tabindex: 0, role: "img" });
  ring.lesson = buildLesson((pressed) => report(ring, pressed));
  const play = playButtons(
    { toggle: () => runOrPause(ring), step: () => stepOnce(ring), restart: () => again(ring) },
    _("Scatter again"),
    isTouched() ? _("Drag any point.") : _("Drag any point. Keys: space runs, s steps, r scatters."),
  );
  ring.run = play.run;
  const status = _("Trails: the last 20 steps. The ring is wide: points at the same place stay visible."),
    saves = { PNG: () => savePicture(ring), CSV: () => saveCircle(ring) },
    foot = footOf(() => report(ring, { next: true }), saves);
  ring.root = stageOf(
    [ring.canvas, play.root, el("p", { class: "status" }, status)],
    [ring.lesson.root, ...knobsOf(ring), ...figuresOf(ring), settingsOf(ring), foot],
  );
  listen(ring);
  return ring;
}

/** Other places to begin at, or other points: the server hears of them. */
function again(ring, isScattered = true) {
  if (isScattered) ring.scatter++;
  restart(ring);
  tick(ring);
  report(ring);
}

/** What is dragged. */
function knobsOf(ring) {
  const moved = () => {
    ring.dragging = true;
    ring.history.length = 0;
    tick(ring);
  };
  buildKnob(ring, {
    turn: (v) => {
      setKnob(ring, v);
      moved();
    },
    told: () => report(ring),
  });
  ring.further = buildFurther({
    turn: () => {
      putFurther(ring.further, ring.kernel);
      moved();
    },
    told: () => report(ring),
  });
  return [ring.knobBar, ring.further.root, ring.further.all];
}

/** Step, loss, alignment and uniformity with their curves, and what is seen in words. */
function figuresOf(ring) {
  const names = [
    [_("loss")],
    [_("alignment"), _("0: positives coincide")],
    [_("uniformity"), _("lower: more evenly spread")],
  ];
  ring.title = el("h2", {});
  ring.course = buildCourse(names, _("loss, alignment and uniformity over the steps"));
  ring.note = el("p", { class: "hint unseen" });
  ring.seen = el("p", { class: "seen" });
  ring.towerLegend = el("span", { hidden: "" }, _("discs and squares: the two towers; lines join partners"));
  const legend = el(
    "div",
    { class: "legend" },
    el("span", {}, mark(PULL), _("the point is pulled more than pushed")),
    el("span", {}, mark(PUSH), _("pushed more than pulled")),
    ring.towerLegend,
  );
  return [ring.title, ring.course.root, ring.note, el("h2", {}, _("What you see")), ring.seen, legend];
}

function settingsOf(ring) {
  const field = (low, high, value) => el("input", { type: "number", min: low, max: high, value });
  ring.points = field(2, 400, 24);
  ring.groups = field(1, MOST_GROUPS, 2);
  ring.groups.onchange = ring.points.onchange = () => again(ring, false);
  ring.towers = el("input", { type: "checkbox" });
  ring.towers.onchange = () => {
    turnTowers(ring);
    tick(ring);
    report(ring);
  };
  ring.speed = el("input", { type: "range", min: 0, max: 1000, step: 1, value: 600 });
  ring.speedShown = el("output", {});
  ring.speed.oninput = () => showStepSize(ring);
  ring.speed.onchange = () => report(ring);
  const towers = setting(_("two towers"), ring.towers);
  towers.title = _("compares rows of one tower only with rows of the other");
  return el(
    "div",
    { class: "settings" },
    setting(_("points"), ring.points),
    setting(_("groups"), ring.groups),
    towers,
    setting(_("step size"), ring.speed, ring.speedShown),
  );
}
