// The elements of the live loss view, and what its buttons do.

import { ORDERS, STAGES, VIEWS } from "./choices.js";
import { drag, report, schedule, tellOf, turnFurther } from "./drag.js";
import { listen } from "./events.js";
import { listenGradients } from "./gradients.js";
import { listenMargin } from "./margin.js";
import { buildPushes } from "./pushes.js";
import { saveCsv, savePng } from "./save.js";
import { pin } from "./second_panel.js";
import { buildCurves, showStage } from "./stages.js";
import { buildStar } from "./star.js";
import { listenSweep } from "./sweep.js";
import { choices, el } from "../shared/dom.js";
import { buildFurther } from "../shared/further_knobs.js";
import { buildKnob } from "../shared/knob.js";
import { buildLesson } from "../shared/lesson.js";
import { _ } from "../shared/locale.js";
import { forwardOf } from "../shared/stage.js";

/**
 * `start`: what an address asks for; what it doesn't name is as at first.
 *
 * @param {any} start
 */
export function build(start) {
  const known = (names, name, otherwise) => (name in names ? name : otherwise);
  /** @type {any} */
  const lab = {
    view: known(VIEWS, start.view, "weight"),
    stage: known(STAGES, start.stage, "matrix"),
    order: known(ORDERS, start.order, "group"),
    overlay: Boolean(start.masks),
    share: true,
    pinned: Boolean(start.second),
    second: { choice: start.second || "same", value: start.second_value ?? null },
    anchor: 0,
    hover: null,
    timings: [],
    stale: true,
    panels: {},
  };
  lab.lesson = buildLesson((pressed) => tellOf(lab, pressed));
  lab.empty = el("div", { class: "empty", hidden: "", role: "status" });
  const view = el("div", { class: "view staged" }, buildStage(lab), buildInspector(lab));
  lab.root = el("div", { class: "lab" }, lab.empty, el("div", { class: "frame" }, lab.lesson.root, view));
  listen(lab);
  listenGradients(lab);
  listenMargin(lab);
  listenSweep(lab);
  return lab;
}

const button = (text, title, onclick) => el("button", { type: "button", title, onclick }, text);

/** The knob, and the picture that it moves. */
function buildStage(lab) {
  lab.matrix = el("canvas", { class: "matrix", tabindex: 0, role: "img" });
  lab.bars = el("canvas", { class: "bars", tabindex: 0, role: "img" });
  lab.barTitle = el("h2", {});
  const turn = (text, pages) =>
    button(text, "", () => {
      lab.barFrom += pages * lab.barStep;
      schedule(lab);
    });
  lab.turns = el("span", { class: "group turns" }, turn(_("nearer"), -1), turn(_("farther"), 1));
  lab.sharing = turnable(
    lab,
    "share",
    _("share among negatives"),
    _("bars from 0 to 100 % of the push on negatives; otherwise the weight or gradient of each pair"),
  );
  lab.barSide = el(
    "div",
    { class: "barside" },
    lab.barTitle,
    lab.bars,
    (lab.barLegend = el("p", { class: "hint" })),
    el("div", { class: "bar under" }, lab.turns, lab.sharing),
  );
  lab.picture = el("div", { class: "picture" }, buildStar(lab), lab.matrix, buildCurves(lab));
  return el("div", { class: "stage" }, buildTools(lab), buildKnobs(lab), lab.picture, buildLegend(lab));
}

/** What the app's toolbar has: for hosts without one. */
function buildTools(lab) {
  const go = (stage) => {
    showStage(lab, stage);
    schedule(lab, true);
    report(lab);
  };
  lab.stageBar = el("span", { class: "group" }, ...choices(STAGES, lab.stage, go));
  const png = button("PNG", _("the stage as a picture"), () => savePng(lab)),
    csv = button("CSV", _("every pair with its score, weight and gradient"), () => saveCsv(lab));
  lab.tools = el("div", { class: "bar" }, lab.stageBar, el("span", { class: "space" }), png, csv);
  return lab.tools;
}

function buildKnobs(lab) {
  buildKnob(lab, { turn: (v, stamp) => drag(lab, v, stamp), told: () => report(lab) });
  lab.further = buildFurther({ turn: (stamp, knob) => turnFurther(lab, stamp, knob), told: () => report(lab) });
  lab.scale = el("small", { title: _("1/τ, the scale of sentence-transformers"), hidden: "" });
  lab.knobBar.append(lab.scale);
  return el("div", { class: "held" }, lab.knobBar, lab.further.root, lab.further.all);
}

function turnable(lab, field, text, title) {
  const b = button(text, title, () => {
    lab[field] = !lab[field];
    b.setAttribute("aria-pressed", String(lab[field]));
    schedule(lab, true);
    report(lab);
  });
  b.setAttribute("aria-pressed", String(lab[field]));
  return b;
}

/** What the matrix shows; from the star it is one click to each. */
function buildLegend(lab) {
  const pick = (field) => (key) => {
    lab[field] = key;
    if (field === "view") showStage(lab, "matrix");
    schedule(lab, true);
    report(lab);
  };
  lab.orderBar = el("span", { class: "group of-matrix" }, ...choices(ORDERS, lab.order, pick("order")));
  lab.viewBar = el("span", { class: "group", role: "group" }, ...choices(VIEWS, lab.view, pick("view")));
  lab.viewBar.setAttribute("aria-label", _("What the matrix shows"));
  lab.over = turnable(lab, "overlay", _("mark positives and negatives"), _("tint every cell as positive or negative"));
  lab.over.classList.add("of-matrix");
  lab.legend = el("div", { class: "legend of-matrix" });
  return el(
    "div",
    { class: "bar below" },
    el("span", { class: "of-star" }, _("As a matrix:")),
    lab.viewBar,
    lab.over,
    lab.orderBar,
    lab.legend,
  );
}

/** The sentence, the curve over the knob, figures, other losses, a pinned setting, and the next step. */
function buildInspector(lab) {
  lab.loss = el("span", { class: "loss" });
  lab.both = el("small", {});
  for (const name of ["effective", "own"]) lab[name] = el("dd", { class: name });
  lab.pull = el("span", { class: "pull" });
  lab.bound = el("small", {});
  for (const name of ["effective", "own", "pull"]) lab[`${name}Title`] = el("dt", {});
  lab.sentence = el("p", { class: "sentence", role: "status", "aria-live": "polite" });
  lab.head = el("div", { class: "head" }, (lab.named = el("small", {})), lab.sentence);
  lab.hint = el("p", { class: "hint", "aria-live": "polite" });
  lab.faces = el("canvas", { class: "faces", "aria-hidden": "true" });
  lab.barPlace = el("div", { class: "barplace" }, lab.barSide);
  lab.letters = el("div", { class: "letters" });
  lab.lettersBox = el("div", { class: "in-letters" }, el("p", { class: "hint" }, _("As a formula")), lab.letters);
  lab.panels.sweep = { canvas: el("canvas", { class: "sweep", "aria-hidden": "true" }) };
  const figure = (title, value) => el("div", {}, title, value);
  const figures = el(
    "dl",
    { class: "figures" },
    figure(el("dt", {}, _("Loss of the batch")), el("dd", {}, lab.loss, lab.both)),
    figure(lab.ownTitle, lab.own),
    figure(lab.pullTitle, el("dd", {}, lab.pull, lab.bound)),
    figure(lab.effectiveTitle, lab.effective),
  );
  lab.pin = button(_("Pin as A"), _("keep this setting and compare it with the next ones"), () => pin(lab));
  lab.panels.two = {
    canvas: el("canvas", { role: "img", class: "two", tabindex: 0, "aria-label": _("Difference of every pair") }),
    note: el("p", { class: "hint", "aria-live": "off" }),
  };
  lab.panelBox = el("div", { class: "panel", hidden: "" }, lab.panels.two.canvas);
  lab.forward = forwardOf(() => tellOf(lab, { go: lab.meta.forward.number }));
  return el(
    "div",
    { class: "inspector" },
    lab.head,
    el("div", { class: "told" }, lab.faces, lab.hint),
    lab.barPlace,
    lab.panels.sweep.canvas,
    lab.lettersBox,
    figures,
    buildPushes(lab),
    lab.pin,
    lab.panelBox,
    el("div", { class: "foot" }, lab.forward),
  );
}
