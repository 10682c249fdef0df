// The page of the playground: spheres, the knobs beside them, and what is told of the training.

import { KNOBS, LOSSES, OF_VIEWS, differing, isUsed, lists } from "./setting.js";
import { choices, el, press, say } from "../shared/dom.js";
import { fromSlider, knobText, symbolOf, toSlider } from "../shared/knob.js";
import { N_, _ } from "../shared/locale.js";

/** @param {any} part */
export function build(part) {
  const button = (text, onclick) => el("button", { type: "button", onclick }, text),
    fields = (of, make) => Object.entries(of).map(([name, about]) => [name, make(part, name, ...about)]),
    { loss, ...others } = lists(Boolean(part.data.labels));
  part.stage = el("div", { class: "spheres" });
  part.headline = el("h2", { role: "status", "aria-live": "off" });
  part.second = el("p", { class: "said" });
  part.run = button("", () => part.setRunning(!part.isRunning));
  part.run.classList.add("primary");
  part.twin = button("", () => part.turnTwin());
  part.which = el("div", { class: "segment" }, ...choices({ 0: "A", 1: "B" }, "0", (key) => part.edit(Number(key))));
  part.fields = Object.fromEntries([...fields({ loss }, select), ...fields(KNOBS, slider), ...fields(others, select)]);
  part.views = el("canvas", { class: "views", role: "img", "aria-label": _("samples and their views") });
  part.curves = el("canvas", { class: "curves", role: "img", "aria-label": _("kNN over the steps") });
  part.curves.hidden = !part.data.labels;
  part.figures = el("table", {});
  const again = [
      button(_("Step"), () => part.step()),
      button(_("Start again"), () => part.restart(part.seed)),
      button(_("Another seed"), () => part.restart(part.seed + 1)),
    ],
    rows = (isOfView) =>
      Object.entries(part.fields).flatMap(([name, { row }]) => (OF_VIEWS.includes(name) === isOfView ? [row] : [])),
    views = el("summary", {}, _("Views: what the network learns from"));
  part.root = el(
    "div",
    { class: "playground" },
    part.stage,
    el(
      "div",
      { class: "side" },
      ...[part.headline, part.second, el("div", { class: "row" }, ...again, part.twin), part.which],
      ...[...rows(false), part.curves, part.figures, el("details", { open: "" }, views, part.views, ...rows(true))],
      part.run,
    ),
  );
}

const rowOf = (text, ...fields) => el("label", { class: "row" }, el("span", {}, text), ...fields);

function select(part, name, label, values) {
  const onchange = () => part.change({ [name]: values[field.selectedIndex] }),
    options = values.map((value) => el("option", { value }, textOf(value))),
    field = el("select", { "aria-label": _(label), onchange }, ...options);
  return { row: rowOf(_(label), field), put: (value) => (field.value = String(value)) };
}

function slider(part, name, label, range) {
  const text = _(label),
    field = el("input", { type: "range", min: 0, max: 1000, "aria-label": text }),
    shown = el("output", {});
  field.oninput = () => part.change({ [name]: fromSlider(range, Number(field.value)) });
  const put = (value) => {
    if (fromSlider(range, Number(field.value)) !== value) field.value = toSlider(range, value);
    field.setAttribute("aria-valuetext", knobText(value));
    say(shown, knobText(value));
  };
  return { row: rowOf(text, field, shown), put };
}

/** The knobs as the setting that is edited has them. */
export function show(part) {
  const setting = part.settings[part.edited],
    isTwin = part.settings.length > 1;
  say(part.run, part.isRunning ? _("Pause") : _("Learn"));
  say(part.twin, isTwin ? _("One sphere") : _("Twins"));
  part.which.hidden = !isTwin;
  press(part.which.children, String(part.edited));
  for (const [name, { put, row }] of Object.entries(part.fields)) {
    put(setting[name]);
    row.hidden = !isUsed(name, setting) || (name === "move" && part.data.shape[0] === 1);
  }
  part.balls.forEach((ball, k) => say(ball.caption, caption(part.settings, k)));
}

/** A value of a list or a slider. */
const textOf = (value) =>
  typeof value === "number" ? knobText(value) : _(LOSSES[value] ?? (value ? N_("on") : N_("off")));

/** What a twin is told from the other by; alone, its loss. */
function caption(settings, k) {
  const own = settings[k],
    isTwin = settings.length > 1,
    about = { ...KNOBS, ...lists(true) },
    texts = (isTwin ? differing(own, settings[1 - k]) : ["loss"]).map((name) => {
      const label = symbolOf({ label: _(about[name][0]) });
      return name === "loss" ? textOf(own.loss) : `${label} = ${textOf(own[name])}`;
    });
  if (own.dimensions > 3) texts.push(_("projected from {d} dimensions", { d: own.dimensions }));
  return (isTwin ? `${"AB"[k]}: ` : "") + (texts.join(", ") || _("the same setting: change one knob"));
}
