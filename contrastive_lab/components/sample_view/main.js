// One sample: the share of each pair in its gradient of the loss, drawn again in the browser as the knob is dragged.

import { pictureOf } from "../gallery/grid.js";
import { sizeCanvas } from "../shared/canvas.js";
import { el, number } from "../shared/dom.js";
import { evaluate } from "../shared/kernels.js";
import { fromSlider, setKnob, toSlider } from "../shared/knob.js";
import { PULL, PUSH, mark, pointedBar } from "../shared/push_pull.js";
import { _ } from "../shared/locale.js";
import { inApp, partOf } from "../shared/part.js";

export const mount = partOf(
  "_why",
  build,
  (view, data) => {
    if (view.key !== data.meta.content) load(view, data);
  },
  redraw,
);

export default inApp(mount);

function build() {
  /** @type {any} */
  const view = {};
  view.slider = el("input", { type: "range", min: 0, max: 1000, step: 1, "aria-label": _("setting of the loss") });
  view.readout = el("output", {});
  view.name = el("span", {});
  const asTrained = () => turn(view, view.meta.knob.value);
  view.back = el("button", { type: "button", onclick: asTrained }, _("as trained"));
  const knob = el("label", { class: "knob" }, view.name, view.slider, view.readout);
  view.knobBar = el("div", { class: "bar" }, knob, view.back);
  for (const name of ["loss", "effective", "pull"]) view[name] = el("dd", { class: name });
  const figure = (title, value) => el("div", {}, el("dt", {}, title), value);
  view.pairs = el("div", { class: "pairs", role: "list" });
  const kinds = [el("span", {}, mark(PULL), _("positive")), el("span", {}, mark(PUSH), _("negative"))],
    legend = el("div", { class: "legend" }, ...kinds);
  view.root = el(
    "div",
    { class: "lab" },
    view.knobBar,
    el(
      "dl",
      { class: "figures" },
      figure(_("Loss of this view"), view.loss),
      figure(_("Negatives that matter"), view.effective),
      figure(_("Pull of its positives"), view.pull),
    ),
    el("div", {}, el("h2", {}, _("Share of each pair in the gradient")), view.pairs, legend),
  );
  view.slider.oninput = () => turn(view, fromSlider(view.meta.knob, view.slider.value));
  return view;
}

function load(view, data) {
  view.S = new Float32Array(data.scores.slice().buffer);
  view.M = data.mask.slice();
  const meta = { ...data.meta, m: view.S.length };
  Object.assign(view, { key: meta.content, meta, kernel: { ...meta.kernel }, out: null });
  view.knobBar.style.display = meta.knob ? "" : "none";
  view.bars = meta.pairs.map((p) => {
    const bar = el("canvas", { style: "height:14px;border-radius:0", "aria-hidden": "true" });
    const share = el("span", { style: "min-width:4em;text-align:right;font-variant-numeric:tabular-nums" });
    const picture = el("canvas", { width: 32, height: 32, style: "width:32px;flex:none", "aria-hidden": "true" });
    const look = "flex:0 0 45%;overflow:hidden;text-overflow:ellipsis;white-space:nowrap",
      parts = [el("span", { style: look, title: p.name }, p.name), el("span", { style: "flex:1;min-width:0" }, bar)];
    const style = "display:flex;gap:8px;align-items:center;margin:2px 0",
      line = el("div", { role: "listitem", style }, picture, ...parts, share);
    return { bar, share, line, picture };
  });
  view.pairs.replaceChildren(...view.bars.map((b) => b.line));
  if (data.thumbnails.length) {
    createImageBitmap(new Blob([data.thumbnails], { type: "image/png" })).then((sheet) =>
      view.bars.forEach(({ picture }, k) => {
        picture.getContext("2d").drawImage(pictureOf(sheet, meta.thumbnails, k, 32, ""), 0, 0);
      }),
    );
  }
  if (meta.knob) {
    view.name.textContent = meta.knob.label;
    turn(view, meta.knob.value);
  } else redraw(view);
}

/** The knob at a value: the slider follows, and all is drawn again. */
function turn(view, value) {
  view.slider.value = toSlider(view.meta.knob, value);
  setKnob(view, value);
  redraw(view);
}

function redraw(view) {
  const { meta } = view;
  view.out = evaluate(view.S, view.M, 1, meta.m, view.kernel, view.out);
  const { grad } = view.out,
    defined = view.out.weight[0] > 0;
  let all = 0,
    pull = 0;
  for (let j = 0; j < meta.m; j++) {
    const size = Math.abs(grad[j]);
    all += size;
    if (view.M[j] === 1) pull += size;
  }
  view.loss.textContent = defined ? number(view.out.loss[0]) : _("none");
  view.effective.textContent = _("{effective} of {negatives}", {
    effective: number(view.out.effective[0]),
    negatives: view.out.negatives[0],
  });
  view.pull.textContent = all ? `${((100 * pull) / all).toFixed(1)} %` : "0 %";
  meta.pairs.forEach((p, k) => {
    const share = all ? Math.abs(grad[p.column]) / all : 0;
    view.bars[k].size = share;
    view.bars[k].share.textContent = `${(100 * share).toFixed(1)} %`;
  });
  drawBars(view);
}

/** Every pair's share as a bar with a point: to the sample where it is pulled, away where it is pushed. */
function drawBars(view) {
  if (!view.bars) return;
  view.bars.forEach(({ bar, size }, k) => {
    if (!size || !bar.clientWidth) return void (bar.style.visibility = "hidden");
    bar.style.visibility = "visible";
    const [g, width, height] = sizeCanvas(bar);
    g.clearRect(0, 0, width, height);
    pointedBar(g, view.meta.pairs[k].positive ? PULL : PUSH, [1, 1, Math.max(1, size * (width - 2)), height - 2]);
  });
}
