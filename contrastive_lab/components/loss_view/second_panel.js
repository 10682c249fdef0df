// Two settings on the same batch: the panel with its controls.

import { compare, differenceWords, fillTable, paintDifference } from "./difference.js";
import { light, report, schedule } from "./drag.js";
import { matrixKeys } from "./events.js";
import { library } from "./library.js";
import { formsOf, settingOf } from "./second.js";
import { sizeCanvas } from "../shared/canvas.js";
import { el, say } from "../shared/dom.js";
import { evaluate } from "../shared/kernels.js";
import { knobPair, knobText, nameKnob, symbolOf, toSlider } from "../shared/knob.js";
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

/** The controls and the table of the panel, for the choice that is made. */
function openTwo(lab) {
  const { canvas, note } = lab.panels.two,
    forms = formsOf(lab),
    { losses, otherRows } = lab.meta;
  const groups = [
    [_("This loss, on the same rows"), Object.entries(forms).map(([key, [text]]) => [key, _(text)])],
    [_("Another loss, on the same rows"), losses],
    [_("This loss, on other vectors"), otherRows],
  ];
  const known = groups.flatMap(([, all]) => all.map(([key]) => key));
  if (!known.includes(lab.second.choice)) {
    Object.assign(lab.second, { choice: known[0] || "", value: null });
    report(lab);
  }
  const optionsOf = (all) => all.map(([key, text]) => el("option", { value: key }, text)),
    offered = groups.filter(([, all]) => all.length),
    select = el("select", { "aria-label": _("setting or loss pinned as A") });
  select.append(...offered.map(([title, all]) => el("optgroup", { label: title }, ...optionsOf(all))));
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
  lab.table = tableOf();
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

/** A row for each figure: now, A, and their difference. */
function tableOf() {
  const names = [_("Loss of the batch"), _("Negatives that matter, mean"), _("This anchor's loss")],
    columns = [_("now"), "A", _("difference")];
  const head = columns.map((name) => el("th", { scope: "col" }, name)),
    rows = [...names, _("Gradient on its positives")].map((name) => [name, columns.map(() => el("td", {}))]);
  const all = [["", head], ...rows].map(([name, cells]) => el("tr", {}, el("th", { scope: "row" }, name), ...cells));
  return el("table", {}, ...all);
}

function knobOfTwo(lab, two) {
  const { knob } = two,
    turn = (v, stamp) => {
      lab.pending ||= stamp;
      lab.secondHeld = true;
      lab.second.value = two.value = v;
      pair.readout.value = knobText(v);
      two.stale = true;
      schedule(lab);
    },
    told = () => {
      lab.secondHeld = false;
      report(lab);
    },
    pair = knobPair(() => knob, { turn, told });
  nameKnob(pair, _("{label} of A", { label: knob.label }));
  pair.slider.value = String(toSlider(knob, two.value));
  pair.readout.value = knobText(two.value);
  return [el("span", {}, symbolOf(knob)), pair.slider, pair.readout];
}

/** @param {LossViewState} lab */
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
