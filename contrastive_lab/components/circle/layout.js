// The elements of the circle, and what its buttons do.

import { tick } from "./frame.js";
import { angleOf, keys, pointAt, runOrPause } from "./pointer.js";
import { MOST_GROUPS, advance, restart, stepSize, turnTowers } from "./points.js";
import { report, saveCircle, savePicture, tellOf } from "./save.js";
import { el } from "../shared/dom.js";
import { buildFurther, putFurther } from "../shared/further_knobs.js";
import { fromSlider, knobField, setKnob, toSlider } from "../shared/knob.js";
import { buildLesson } from "../shared/lesson.js";
import { PULL, PUSH, mark } from "../shared/push_pull.js";
import { _ } from "../shared/locale.js";

/** @param {CircleState} ring */
export function showStepSize(ring) {
  ring.speedShown.textContent = String(Number(stepSize(ring).toPrecision(2)));
}

/**
 * @param {any} parent
 */
export function build(parent) {
  /** @type {any} */
  const ring = { running: false, step: 0, scatter: 0, timings: [], value: 1 };
  ring.canvas = el("canvas", { class: "ring", tabindex: 0, role: "img" });
  ring.curves = el("canvas", { class: "ringcurves", role: "img" });
  ring.run = el("button", { type: "button", onclick: () => runOrPause(ring) }, _("Run"));
  const button = (text, onclick) => el("button", { type: "button", onclick }, text);
  ring.slider = el("input", { type: "range", min: 0, max: 1000, step: 1 });
  ring.readout = knobField(
    () => ring.meta.knob,
    (v) => {
      ring.slider.value = toSlider(ring.meta.knob, v);
      setKnob(ring, v);
      ring.history.length = 0;
      tick(ring);
      report(ring);
    },
  );
  ring.knobName = el("span", {});
  ring.speed = el("input", { type: "range", min: 0, max: 1000, step: 1, value: 600, "aria-label": _("step size") });
  ring.speedShown = el("output", {});
  ring.speed.oninput = () => showStepSize(ring);
  ring.speed.onchange = () => report(ring);
  ring.groups = el("input", { type: "number", min: 1, max: MOST_GROUPS, value: 2, "aria-label": _("groups") });
  ring.points = el("input", { type: "number", min: 2, max: 400, value: 24, "aria-label": _("points") });
  ring.groups.onchange = ring.points.onchange = () => {
    restart(ring);
    tick(ring);
    report(ring);
  };
  ring.towers = el("input", { type: "checkbox" });
  ring.towers.onchange = () => {
    turnTowers(ring);
    tick(ring);
    report(ring);
  };
  ring.note = el("p", { class: "hint" });
  ring.lesson = buildLesson((pressed) => tellOf(ring, pressed));
  ring.knobBar = el("div", { class: "knob" }, ring.knobName, ring.slider, ring.readout);
  ring.further = buildFurther({
    turn: () => {
      ring.dragging = true;
      putFurther(ring.further, ring.kernel);
      ring.history.length = 0;
      tick(ring);
    },
    told: () => {
      ring.dragging = false;
      report(ring);
    },
  });
  ring.towerLegend = el("span", { hidden: "" }, _("discs and squares: the two towers; lines join partners"));
  const view = el(
    "div",
    { class: "view" },
    el(
      "div",
      { class: "bar" },
      ring.run,
      button(_("Step"), () => {
        ring.running = false;
        advance(ring);
        tick(ring);
        report(ring);
      }),
      button(_("Scatter again"), () => {
        ring.scatter++;
        restart(ring);
        tick(ring);
        report(ring);
      }),
      el("label", {}, _("points "), ring.points),
      el("label", {}, _("groups "), ring.groups),
      el(
        "label",
        { title: _("compares rows of one tower with rows of the other alone") },
        ring.towers,
        _(" two towers"),
      ),
      el("label", {}, _("step size "), ring.speed, " ", ring.speedShown),
      el("span", { class: "space" }),
      el(
        "span",
        { class: "group" },
        button("PNG", () => savePicture(ring)),
        button("CSV", () => saveCircle(ring)),
      ),
    ),
    el("div", { class: "bar" }, ring.knobBar),
    ring.further.root,
    el(
      "div",
      { class: "body" },
      ring.canvas,
      el(
        "div",
        {},
        ring.note,
        el(
          "div",
          { class: "legend" },
          el("span", {}, mark(PULL), _("the point is pulled more than pushed")),
          el("span", {}, mark(PUSH), _("pushed more than pulled")),
          ring.towerLegend,
        ),
        ring.curves,
        el(
          "p",
          { class: "hint" },
          _("Keys on the circle: n and p choose a point, ← and → turn it, space runs and pauses, s steps."),
        ),
      ),
    ),
  );
  ring.root = el("div", { class: "lab" }, el("div", { class: "frame" }, ring.lesson.root, view));
  parent.append(ring.root);
  ring.slider.oninput = () => {
    ring.dragging = true;
    setKnob(ring, fromSlider(ring.meta.knob, ring.slider.value));
    ring.history.length = 0;
    tick(ring);
  };
  ring.slider.onchange = () => {
    ring.dragging = false;
    report(ring);
  };
  ring.canvas.onpointerdown = (e) => {
    ring.held = pointAt(ring, e);
    ring.canvas.setPointerCapture(e.pointerId);
  };
  ring.canvas.onpointermove = (e) => {
    if (ring.held >= 0) {
      ring.angles[ring.held] = angleOf(ring, e);
      ring.moved = true;
      tick(ring);
    }
  };
  ring.canvas.onpointerup = ring.canvas.onpointercancel = () => {
    const held = ring.held >= 0;
    ring.held = -1;
    if (held && ring.meta.bare) Object.assign(ring, { step: 0, running: true });
    tick(ring);
    if (held && !ring.running) report(ring);
  };
  ring.canvas.onkeyup = ring.canvas.onblur = () => {
    if (ring.byKey && !ring.running) report(ring);
    ring.byKey = false;
  };
  ring.canvas.onkeydown = (e) => keys(ring, e);
  ring.held = ring.chosen = -1;
  ring.observer = new ResizeObserver(() => tick(ring));
  ring.observer.observe(ring.root);
  return ring;
}
