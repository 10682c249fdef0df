// The page of the playground: spheres, the knobs beside them, and what is told of the training.

import { BATCHES, KNOBS, LOSSES, STRENGTHS, differing, hasKnob } from "./setting.js";
import { choices, el, say } from "../shared/dom.js";
import { fromSlider, knobText, toSlider } from "../shared/knob.js";
import { _ } from "../shared/locale.js";

/**
 * @param {any} part
 */
export function build(part) {
  const button = (text, onclick) => el("button", { type: "button", onclick }, text);
  part.stage = el("div", { class: "spheres" });
  part.headline = el("h2", { role: "status", "aria-live": "off" });
  part.second = el("p", { class: "said" });
  part.run = button("", () => part.setRunning(!part.isRunning));
  part.run.classList.add("primary");
  part.twin = button("", () => part.turnTwin());
  part.which = el("div", { class: "segment" }, ...choices({ 0: "A", 1: "B" }, "0", (key) => part.edit(Number(key))));
  part.loss = select(
    _("Loss"),
    Object.entries(LOSSES).map(([key, text]) => [key, _(text)]),
    (loss) => part.change({ loss }),
  );
  part.batch = select(
    _("Images in a batch"),
    BATCHES.map((size) => [String(size), String(size)]),
    (size) => part.change({ batch: Number(size) }),
  );
  part.sliders = Object.fromEntries(
    Object.entries(KNOBS).map(([name, [text, range]]) => [
      name,
      slider(_(text), range, (value) => part.change({ [name]: value })),
    ]),
  );
  part.gate = el("input", {
    type: "checkbox",
    onchange: () => part.change({ stopGradient: part.gate.checked }),
  });
  part.gateRow = el("label", { class: "row" }, part.gate, _("stop-gradient"));
  part.strengths = Object.fromEntries(
    Object.entries(STRENGTHS).map(([name, text]) => [
      name,
      slider(_(text), { low: 0, high: 1, log: false }, (value) => part.strengthen({ [name]: value })),
    ]),
  );
  part.views = el("canvas", { class: "views", role: "img", "aria-label": _("images and their views") });
  part.curves = el("canvas", { class: "curves", role: "img" });
  part.figures = el("table", {});
  part.root = el(
    "div",
    { class: "playground" },
    part.stage,
    el(
      "div",
      { class: "side" },
      part.headline,
      part.second,
      el(
        "div",
        { class: "row" },
        part.run,
        button(_("Step"), () => part.step()),
        button(_("Start again"), () => part.restart(part.seed)),
        button(_("Another seed"), () => part.restart(part.seed + 1)),
        part.twin,
      ),
      part.which,
      part.loss.row,
      ...Object.values(part.sliders).map(({ row }) => row),
      part.gateRow,
      part.batch.row,
      part.curves,
      part.figures,
      el(
        "details",
        { open: "" },
        el("summary", {}, _("Views: what the network learns from")),
        part.views,
        ...Object.values(part.strengths).map(({ row }) => row),
      ),
    ),
  );
}

function select(text, options, then) {
  const field = el(
    "select",
    { "aria-label": text, onchange: () => then(field.value) },
    ...options.map(([value, shown]) => el("option", { value }, shown)),
  );
  return { field, row: el("label", { class: "row" }, el("span", {}, text), field) };
}

function slider(text, range, then) {
  const field = el("input", { type: "range", min: 0, max: 1000, "aria-label": text }),
    value = el("output", {});
  field.oninput = () => {
    const now = fromSlider(range, Number(field.value));
    say(value, knobText(now));
    then(now);
  };
  const put = (now) => {
    field.value = toSlider(range, now);
    field.setAttribute("aria-valuetext", knobText(now));
    say(value, knobText(now));
  };
  return { put, row: el("label", { class: "row" }, el("span", {}, text), field, value) };
}

/**
 * The knobs as the setting that is edited has them.
 *
 * @param {any} part
 */
export function show(part) {
  const setting = part.settings[part.edited],
    isTwin = part.settings.length > 1;
  say(part.run, part.isRunning ? _("Pause") : _("Learn"));
  say(part.twin, isTwin ? _("One sphere") : _("Twins"));
  part.which.hidden = !isTwin;
  for (const one of part.which.children)
    one.setAttribute("aria-pressed", String(Number(one.dataset.key) === part.edited));
  part.loss.field.value = setting.loss;
  part.batch.field.value = String(setting.batch);
  for (const [name, { put, row }] of Object.entries(part.sliders)) {
    put(setting[name]);
    row.hidden = !hasKnob(name, setting);
  }
  for (const [name, { put }] of Object.entries(part.strengths)) put(setting.strengths[name]);
  part.gate.checked = setting.stopGradient;
  part.gateRow.hidden = setting.loss !== "simsiam";
  part.balls.forEach((ball, k) => say(ball.caption, caption(part.settings, k)));
}

/** What a twin is told from the other by; alone, its loss. */
function caption(settings, k) {
  const own = settings[k],
    letter = settings.length > 1 ? `${"AB"[k]}: ` : "",
    names = settings.length > 1 ? differing(own, settings[1 - k]) : ["loss"],
    texts = names.map((name) => {
      if (name === "loss") return _(LOSSES[own.loss]);
      if (name in KNOBS) return `${_(KNOBS[name][0]).split(/[,，]/)[0]} = ${knobText(own[name])}`;
      if (name === "batch") return _("batch {size}", { size: own.batch });
      if (name === "stopGradient") return own.stopGradient ? _("with stop-gradient") : _("without stop-gradient");
      return `${_(STRENGTHS[name])} ${knobText(own.strengths[name])}`;
    });
  return letter + (texts.join(", ") || _("the same setting: change one knob"));
}
