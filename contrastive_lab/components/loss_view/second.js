// Two settings on the same batch: another form, loss or rows, or another knob, with the difference.
// What both the browser can compute follows its slider at each frame; the rest redraws on release.

import { library, light, matrixKeys, report, schedule } from "./main.js";
import { el, number, say, sizeCanvas } from "../shared/dom.js";
import { fromSlider, knobField, knobText, toSlider } from "../shared/knob.js";
import { evaluate } from "../shared/kernels.js";
import { BITS, divergingShades, isFar, largest, meanNegatives, pullOf } from "./draw.js";

const SAME = 1e-6; // differences below this are rounding

/** The forms that a second setting may take on the same scores. */
const FORMS = {
  softmax: {
    same: ["the same loss", {}],
    out: ["all in one denominator (NT-Xent, SupCon out)", { denominator: "all", aggregate: "out" }],
    in: ["mean inside the log (SupCon in)", { denominator: "all", aggregate: "in" }],
    own: ["each positive on its own (InfoNCE)", { denominator: "own_positive", aggregate: "out" }],
  },
  pair: {
    same: ["the same loss", {}],
    plain: ["hinge on the distance", { squared: false }],
    squared: ["hinge on the squared distance", { squared: true }],
  },
  triplet: {
    same: ["the same loss", {}],
    all: ["all triplets", { mining: "all" }],
    semi_hard: ["semi-hard triplets", { mining: "semi_hard" }],
    hard: ["the hardest triplet", { mining: "hard" }],
  },
};

function formsOf(lab) {
  return lab.kernel ? FORMS[lab.kernel.form || "softmax"] : {};
}

/** What the server sent of a second loss, or of other rows. */
export function readSecond(lab, data) {
  const meta = data.meta.second;
  if (!meta) {
    lab.given = null;
    return;
  }
  if (lab.given && lab.given.key === meta.key) {
    lab.given.knob &&= meta.knob;
    return;
  }
  lab.given = { ...meta, knob: meta.kernel && !meta.kernel.knob ? null : meta.knob };
  if (data.scores2) {
    lab.given.S = new Float32Array(data.scores2.slice().buffer);
    lab.given.M = data.mask2.slice();
    const bytes = { pair: data.pair2, grad: data.grad2, loss: data.loss2 };
    lab.given.out = meta.kernel ? null : library(lab.given.M, lab.n, lab.w, bytes, meta);
  }
  if (lab.panel === "two" && !lab.secondHeld) openTwo(lab);
}

/** The controls and the table of the panel, for the choice that is made. */
export function openTwo(lab) {
  const forms = formsOf(lab),
    others = lab.meta.others || {};
  const groups = [
    ["This loss, on the same rows", Object.entries(forms).map(([key, [text]]) => [key, text])],
    ["Another loss, on the same rows", others.losses || []],
    ["This loss, on other rows", others.rows || []],
  ];
  const known = groups.flatMap(([, all]) => all.map(([key]) => key));
  if (!known.includes(lab.second.choice)) {
    Object.assign(lab.second, { choice: known[0] || "", value: null });
    report(lab);
  }
  const select = el(
    "select",
    { "aria-label": "what the second setting is" },
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
    controls = [el("span", {}, "Second setting"), select];
  if (two.knob) controls.push(...knobOfTwo(lab, two));
  lab.table = el(
    "table",
    {},
    ...["", "Loss of the batch", "Effective negatives, mean", "This anchor's loss", "Gradient on its positives"].map(
      (name, k) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, name),
          ...["first", "second", "difference"].map((c) => (k ? el("td", {}) : el("th", { scope: "col" }, c))),
        ),
    ),
  );
  lab.extra.onpointermove = lab.extra.onpointerdown = (e) =>
    light(lab, [
      lab.rows[Math.floor((e.offsetY / lab.extra.clientHeight) * lab.n)] ?? null,
      lab.columns[Math.floor((e.offsetX / lab.extra.clientWidth) * lab.w)] ?? null,
    ]);
  lab.extra.onpointerleave = lab.matrix.onpointerleave;
  lab.extra.tabIndex = 0;
  lab.extra.onkeydown = (e) => matrixKeys(lab, e);
  lab.extra.onkeyup = lab.matrix.onkeyup;
  lab.panelBox.replaceChildren(
    el("div", { class: "bar knob" }, ...controls),
    el("div", { class: "body" }, lab.extra, el("div", {}, lab.table, lab.note)),
  );
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
    symbol = el("span", {}, knob.label.split(",")[0]);
  const slider = el("input", {
    type: "range",
    min: 0,
    max: 1000,
    step: 1,
    "aria-label": `${knob.label} of the second setting`,
  });
  readout.setAttribute("aria-label", `${knob.label} of the second setting, as a number`);
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

/** Scores, kernel and knob of the second setting; without `S` it waits for the server. */
function settingOf(lab, forms) {
  const { choice } = lab.second,
    form = forms[choice],
    given = !form && lab.given && lab.given.choice === choice ? lab.given : null;
  const two = form
    ? { S: lab.S, M: lab.M, kernel: { ...lab.kernel, ...form[1] }, knob: lab.kernel.knob ? lab.meta.knob : null }
    : given
      ? { ...given, kernel: given.kernel && { ...given.kernel } }
      : {};
  two.value =
    lab.second.value ?? (form && two.knob ? otherValue(two.knob, lab.value, choice) : two.knob ? two.knob.value : null);
  if (two.knob) two.value = Math.min(two.knob.high, Math.max(two.knob.low, two.value));
  two.stale = true;
  return two;
}

/** A second value at which something differs: a quarter of τ, half of ε; a form keeps the value. */
function otherValue(knob, value, choice) {
  return choice !== "same" ? value : Number(Math.max(knob.low, value / (knob.log ? 4 : 2)).toPrecision(4));
}

export function drawTwo(lab, g, width, height) {
  const two = lab.two,
    a = lab.out;
  lab.extra.hidden = lab.table.hidden = !two.S || !a;
  if (!two.S) {
    say(lab.note, two.reason || (lab.second.choice ? "The server computes it…" : "Nothing to compare with."));
    return;
  }
  if (!a) return;
  if (lab.extra.width !== Math.round(lab.extra.clientWidth * (devicePixelRatio || 1)))
    [g, width, height] = sizeCanvas(lab.extra);
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
  g.imageSmoothingEnabled = lab.w > 1.2 * lab.extra.width;
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
  say(lab.note, differenceWords(two));
}

/** The difference of the weights or, where no weight differs, of how hard each pair is pulled:
 *  SupCon's two forms, for one, weigh every pair alike and still pull differently. */
function compare(lab, two, a, b) {
  const count = lab.n * lab.w,
    signs = [isFar(lab) ? 1 : -1, (two.scoreName ?? lab.meta.scoreName).includes("distance") ? 1 : -1];
  two.difference ||= new Float32Array(count);
  for (two.of of ["pair", "grad"]) {
    const [p, q] = two.of === "pair" ? [1, 1] : signs,
      x = a[two.of],
      y = b[two.of],
      d = two.difference;
    for (let k = 0; k < count; k++) d[k] = p * x[k] - q * y[k];
    two.top = largest(d);
    if (two.top > SAME) break;
  }
}

function fillTable(lab, two, a, b) {
  const i = lab.anchor,
    mean = (o) => (meanNegatives(o, lab.n) || [NaN])[0];
  const rows = [
    [a.value, b.value],
    [mean(a), mean(b)],
    [a.loss[i], b.loss[i]],
    [pullOf(a, lab.M, i, lab.w), pullOf(b, two.M, i, lab.w)],
  ];
  ["first", "second"].forEach((name, c) => {
    const [setting, value] = c ? [two, two.value] : [lab, lab.value],
      knob = setting.knob || (c ? null : lab.meta.knob);
    say(lab.table.rows[0].cells[c + 1], knob ? `${name}, ${knob.label.split(",")[0]} ${number(value)}` : name);
  });
  rows.forEach(([x, y], k) =>
    [x, y, x - y].forEach((v, c) => {
      say(lab.table.rows[k + 1].cells[c + 1], Number.isNaN(v) ? "none" : number(v));
    }),
  );
  lab.tableOf = i;
}

function differenceWords({ top, of }) {
  if (!(top > SAME)) return "Both put the same weight and the same gradient on every pair.";
  if (of === "pair")
    return `Orange: pairs that weigh more in the first setting, blue: more in the second; the largest difference is ${number(top)}.`;
  return `Both put the same weight on every pair, but not the same gradient. Orange: pairs that are pulled harder in the first setting, blue: harder in the second; the largest difference is ${number(top)}.`;
}

function paintDifference(lab, two) {
  two.image ||= new ImageData(Math.max(1, lab.w), Math.max(1, lab.n));
  two.buffer ||= new OffscreenCanvas(Math.max(1, lab.w), Math.max(1, lab.n));
  const pixels = new Uint32Array(two.image.data.buffer),
    bits = new Uint32Array(two.difference.buffer),
    table = divergingShades(Math.max(two.top, SAME), false);
  for (let r = 0, p = 0; r < lab.n; r++)
    for (let c = 0; c < lab.w; c++, p++) pixels[p] = table[bits[lab.rows[r] * lab.w + lab.columns[c]] >>> BITS];
  two.buffer.getContext("2d").putImageData(two.image, 0, 0);
}
