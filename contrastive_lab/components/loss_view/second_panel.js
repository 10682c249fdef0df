// Two settings on the same batch: the panel with its controls.

import { compare, differenceWords, fillTable, paintDifference } from "./difference.js";
import { light, report, schedule } from "./drag.js";
import { matrixKeys } from "./events.js";
import { library } from "./library.js";
import { formsOf, settingOf } from "./second.js";
import { sizeCanvas } from "../shared/canvas.js";
import { el, say } from "../shared/dom.js";
import { evaluate } from "../shared/kernels.js";
import { fromSlider, knobField, knobText, symbolOf, toSlider } from "../shared/knob.js";
import { _ } from "../shared/locale.js";

/**
 * What the server sent of a second loss, or of other rows.
 *
 * @param {LossViewState} lab
 * @param {any} data
 */
export function readSecond(lab, data) {
  const meta = data.meta.second;
  if (!meta) {
    lab.given = null;
    return;
  }
  if (lab.given && lab.given.content === meta.content) {
    lab.given.knob &&= meta.knob;
    return;
  }
  lab.given = { ...meta, choice: data.meta.choice, knob: meta.kernel && !meta.kernel.knob ? null : meta.knob };
  if (data.second?.scores) {
    lab.given.S = new Float32Array(data.second.scores.slice().buffer);
    lab.given.M = data.second.mask.slice();
    lab.given.out = meta.kernel ? null : library(lab.given.M, lab.n, lab.w, data.second.computed, meta);
  }
  if (lab.pinned && !lab.secondHeld) openTwo(lab);
}

/**
 * Keep the setting of this moment as A, or let it go.
 *
 * @param {LossViewState} lab
 */
export function pin(lab) {
  lab.pinned = !lab.pinned;
  lab.second = { choice: "same", value: lab.value ?? null };
  showTwo(lab);
  schedule(lab, true);
  report(lab);
}

/**
 * The panel, where a setting is pinned.
 *
 * @param {LossViewState} lab
 */
export function showTwo(lab) {
  lab.panelBox.hidden = !lab.pinned;
  lab.pin.setAttribute("aria-pressed", String(lab.pinned));
  if (lab.pinned) openTwo(lab);
}

/**
 * A pinned loss stays pinned when the page takes another one.
 *
 * @param {LossViewState} lab
 * @param {string} name of the loss that comes
 */
export function keepPinned(lab, name) {
  const { second, meta } = lab;
  if (!lab.pinned || !meta || meta.name === name) return;
  if (second.choice === `loss:${name}`) second.choice = "same";
  else if (!second.choice.includes(":")) second.choice = `loss:${meta.name}`;
  report(lab);
}

/**
 * The controls and the table of the panel, for the choice that is made.
 *
 * @param {LossViewState} lab
 */
export function openTwo(lab) {
  const { canvas, note } = lab.panels.two,
    forms = formsOf(lab),
    others = lab.meta.alternatives;
  const groups = [
    [_("This loss, on the same rows"), Object.entries(forms).map(([key, [text]]) => [key, _(text)])],
    [_("Another loss, on the same rows"), others.losses],
    [_("This loss, on other vectors"), others.rows],
  ];
  const known = groups.flatMap(([, all]) => all.map(([key]) => key));
  if (!known.includes(lab.second.choice)) {
    Object.assign(lab.second, { choice: known[0] || "", value: null });
    report(lab);
  }
  const select = el(
    "select",
    { "aria-label": _("what is pinned as A") },
    ...groups
      .filter(([, all]) => all.length)
      .map(([title, all]) =>
        el("optgroup", { label: title }, ...all.map(([key, text]) => el("option", { value: key }, text))),
      ),
  );
  select.value = lab.second.choice;
  select.onchange = () => {
    lab.secondHeld = false;
    Object.assign(lab.second, { choice: select.value, value: null });
    openTwo(lab);
    schedule(lab, true);
    report(lab);
  };
  const two = (lab.two = settingOf(lab, forms)),
    controls = [el("span", {}, "A"), select];
  if (two.knob) controls.push(...knobOfTwo(lab, two));
  lab.table = el(
    "table",
    {},
    ...[
      "",
      _("Loss of the batch"),
      _("Negatives that matter, mean"),
      _("This anchor's loss"),
      _("Gradient on its positives"),
    ].map((name, k) =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }, name),
        ...[_("now"), "A", _("difference")].map((c) => (k ? el("td", {}) : el("th", { scope: "col" }, c))),
      ),
    ),
  );
  canvas.onpointermove = canvas.onpointerdown = (e) =>
    light(lab, [
      lab.rows[Math.floor((e.offsetY / canvas.clientHeight) * lab.n)] ?? null,
      lab.columns[Math.floor((e.offsetX / canvas.clientWidth) * lab.w)] ?? null,
    ]);
  canvas.onpointerleave = lab.matrix.onpointerleave;
  canvas.tabIndex = 0;
  canvas.onkeydown = (e) => matrixKeys(lab, e);
  canvas.onkeyup = lab.matrix.onkeyup;
  lab.panelBox.replaceChildren(el("div", { class: "bar knob" }, ...controls), lab.table, note, canvas);
}

function knobOfTwo(lab, two) {
  const { knob } = two,
    readout = knobField(
      () => knob,
      (v) => {
        slider.value = toSlider(knob, v);
        change(v, 0);
        slider.onchange();
      },
    ),
    symbol = el("span", {}, symbolOf(knob));
  const slider = el("input", {
    type: "range",
    min: 0,
    max: 1000,
    step: 1,
    "aria-label": _("{label} of A", { label: knob.label }),
  });
  readout.setAttribute("aria-label", _("{label} of A, as a number", { label: knob.label }));
  const change = (v, stamp) => {
    lab.pending ||= stamp;
    lab.secondHeld = true;
    lab.second.value = two.value = v;
    readout.value = knobText(v);
    two.stale = true;
    schedule(lab);
  };
  slider.value = toSlider(knob, two.value);
  readout.value = knobText(two.value);
  slider.oninput = (e) => change(fromSlider(knob, slider.value), e.timeStamp);
  slider.onchange = () => {
    lab.secondHeld = false;
    report(lab);
  };
  return [symbol, slider, readout];
}

/**
 * @param {LossViewState} lab
 */
export function drawTwo(lab) {
  if (!lab.pinned || !lab.two) return;
  const { canvas, note } = lab.panels.two,
    two = lab.two,
    a = lab.out;
  canvas.hidden = lab.table.hidden = !two.S || !a;
  if (!two.S) {
    say(note, two.reason || (lab.second.choice ? _("The server computes it…") : _("Nothing to compare with.")));
    return;
  }
  if (!a) return;
  const [g, width, height] = sizeCanvas(canvas);
  if (two.stale && two.kernel) {
    // the kernel whose knob did not move is not computed again
    if (two.kernel.knob && two.knob) two.kernel[two.kernel.knob] = two.value;
    two.out = evaluate(two.S, two.M, lab.n, lab.w, two.kernel, two.out);
  }
  const moved = lab.stale || two.stale;
  two.stale = false;
  if (moved) {
    compare(lab, two, a, two.out);
    paintDifference(lab, two);
  }
  if (moved || lab.tableOf !== lab.anchor) fillTable(lab, two, a, two.out);
  g.imageSmoothingEnabled = lab.w > 1.2 * canvas.width;
  g.drawImage(two.buffer, 0, 0, width, height);
  const [row, column] = lab.hover || [lab.anchor, null],
    ch = height / lab.n,
    cw = width / lab.w;
  g.strokeStyle = lab.ink;
  if (row !== null)
    g.strokeRect(
      column === null ? 0 : lab.columns.indexOf(column) * cw,
      lab.rows.indexOf(row) * ch,
      column === null ? width : Math.max(cw, 3),
      Math.max(ch, 2),
    );
  say(note, differenceWords(two));
}
