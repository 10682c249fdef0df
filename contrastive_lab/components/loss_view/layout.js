// The elements of the live loss view, and what its buttons do.

import { ORDERS, PANELS, VIEWS } from "./choices.js";
import { drag, report, schedule, listenToKnob, tellOf, turnFurther } from "./drag.js";
import { listen } from "./events.js";
import { isHinge } from "./pairs.js";
import { openPanel } from "./panels.js";
import { saveCsv, savePng } from "./save.js";
import { choices, el } from "../shared/dom.js";
import { buildFurther } from "../shared/further_knobs.js";
import { knobField, toSlider } from "../shared/knob.js";
import { buildLesson } from "../shared/lesson.js";
import { _ } from "../shared/locale.js";

/**
 * `start`: what an address asks for; what it doesn't name is as at first.
 *
 * @param {any} parent
 * @param {any} [start]
 */
export function build(parent, start) {
  const known = (names, name, otherwise) => (name in names ? name : otherwise);
  /** @type {any} */
  const lab = {
    view: known(VIEWS, start.view, "weight"),
    panel: known(PANELS, start.panel, "none"),
    order: known(ORDERS, start.order, "group"),
    overlay: Boolean(start.masks),
    share: Boolean(start.share),
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
  lab.loss = el("span", { class: "loss" });
  lab.both = el("small", {});
  for (const name of ["effective", "own", "ownEffective"]) lab[name] = el("dd", { class: name });
  lab.pull = el("span", { class: "pull" });
  lab.bound = el("small", {});
  for (const name of ["effective", "own", "ownEffective", "pull"]) lab[`${name}Title`] = el("dt", {});
  lab.sentence = el("p", { class: "sentence", role: "status", "aria-live": "polite" });
  lab.matrix = el("canvas", { class: "matrix", tabindex: 0, role: "img" });
  lab.bars = el("canvas", { class: "bars", tabindex: 0, role: "img" });
  lab.hint = el("p", { class: "hint", "aria-live": "polite" });
  lab.faces = el("canvas", { class: "faces", "aria-hidden": "true" });
  lab.barTitle = el("h2", {});
  const turn = (text, pages) =>
    el(
      "button",
      {
        type: "button",
        onclick: () => {
          lab.barFrom += pages * lab.barStep;
          schedule(lab);
        },
      },
      text,
    );
  lab.turns = el("span", { class: "group turns" }, turn(_("nearer"), -1), turn(_("farther"), 1));
  lab.legend = el("div", { class: "legend" });
  lab.panelBox = el("div", { class: "panel", hidden: "" });
  const pick = (field) => (key) => {
    lab[field] = key;
    schedule(lab, true);
    report(lab);
  };
  lab.orderBar = el("span", { class: "group" }, ...choices(ORDERS, lab.order, pick("order")));
  lab.viewBar = el("span", { class: "group" }, ...choices(VIEWS, lab.view, pick("view")));
  const turnable = (field, text, title) => {
    const b = el("button", { type: "button", title, "aria-pressed": String(lab[field]) }, text);
    b.onclick = () => {
      lab[field] = !lab[field];
      b.setAttribute("aria-pressed", String(lab[field]));
      schedule(lab, true);
      report(lab);
    };
    return b;
  };
  lab.over = turnable("overlay", _("mark positives and negatives"), _("their tints under every cell"));
  lab.sharing = turnable(
    "share",
    _("share among negatives"),
    _("in percent of the total push: the bars stay visible at a low τ"),
  );
  const figure = (title, value) => el("div", {}, title, value);
  lab.lesson = buildLesson((pressed) => tellOf(lab, pressed));
  lab.knobBar = el("div", { class: "knob" }, lab.knobName, lab.slider, lab.readout);
  lab.further = buildFurther({
    turn: (stamp) => turnFurther(lab, stamp),
    told: () => report(lab),
  });
  lab.barSide = el(
    "div",
    { class: "barside" },
    lab.barTitle,
    lab.bars,
    el("div", { class: "bar under" }, lab.turns, lab.sharing),
  );
  const view = el(
    "div",
    { class: "view" },
    el("div", { class: "held" }, el("div", { class: "bar" }, lab.knobBar), lab.further.root, lab.sentence),
    el(
      "dl",
      { class: "figures" },
      figure(el("dt", {}, _("Loss of the batch")), el("dd", {}, lab.loss, lab.both)),
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
            title: _("the matrix, the bars and the open panel as a picture"),
            onclick: () => savePng(lab),
          },
          "PNG",
        ),
        el(
          "button",
          { type: "button", title: _("every pair with its score, weight and gradient"), onclick: () => saveCsv(lab) },
          "CSV",
        ),
      ),
    ),
    el(
      "div",
      { class: "bar panels", role: "group", "aria-label": _("More") },
      ...(lab.panelButtons = choices(PANELS, lab.panel, (key) => {
        if (key === "grads") show(lab, "grad"); // pull and push of every pair belong to this panel
        // active hinges are marked there
        if (key === "scores" && isHinge(lab) && lab.view !== "grad") show(lab, "weight");
        openPanel(lab, key);
        schedule(lab, true);
        report(lab);
      })),
    ),
    (lab.body = el(
      "div",
      { class: "body" },
      el("div", {}, lab.matrix, lab.legend),
      el("div", { class: "side" }, el("div", { class: "told" }, lab.faces, lab.hint), lab.barSide),
      lab.panelBox,
    )),
  );
  lab.root = el("div", { class: "lab" }, el("div", { class: "frame" }, lab.lesson.root, view));
  lab.empty = el("div", { class: "empty", hidden: "", role: "status" });
  parent.append(lab.empty, lab.root);
  listenToKnob(lab);
  listen(lab);
  lab.resize = new ResizeObserver(() => schedule(lab));
  lab.resize.observe(lab.root);
  return lab;
}

function show(lab, view) {
  lab.view = view;
  for (const b of lab.viewBar.children) b.setAttribute("aria-pressed", String(b.dataset.key === view));
}
