// A histogram with a cut-off: dragged, clicked, or moved by the arrow keys; what lies above it is told at once.

import { BLUE, GRAY, ORANGE, line, rgb, sizeCanvas, theme, tick } from "../shared/canvas.js";
import { el, say } from "../shared/dom.js";
import { unpack } from "../shared/transport.js";
import { speak } from "../shared/words.js";

const BELOW = 18; // pixels for the numbers of the axis

/**
 * @param {any} parent the element that it fills
 * @param {Uint8Array} blob what pack of shared/transport.py gives; another one may follow
 * @param {Host} host where it stands
 */
export function mount(parent, blob, host) {
  const view = parent._cutoff || (parent._cutoff = build(parent));
  view.host = host;
  view.meta = unpack(blob).meta;
  view.input.max = view.meta.counts.length;
  if (view.given !== view.meta.cut) view.input.value = Math.round(view.meta.cut * view.meta.counts.length);
  view.given = view.meta.cut;
  redraw(view);
  speak(parent);
  return () => {
    view.resize.disconnect();
    view.root.remove();
    parent._cutoff = null;
  };
}

/**
 * @param {PartArguments} component
 */
export default function ({ parentElement, data, setStateValue }) {
  return mount(parentElement, data, { report: setStateValue });
}

function build(parent) {
  /** @type {any} */
  const view = { given: null };
  view.canvas = el("canvas", { "aria-hidden": "true" });
  view.input = el("input", { type: "range", min: 0, step: 1, "aria-label": "Cut-off" });
  view.count = el("p", { class: "count" });
  view.text = el("p", { role: "status" });
  view.root = el(
    "div",
    { class: "cutoff" },
    el(
      "div",
      { class: "desk" },
      el("div", { class: "field" }, view.canvas, view.input),
      el("div", {}, view.count, view.text),
    ),
  );
  view.input.oninput = () => redraw(view);
  view.input.onchange = () => {
    view.given = cutOf(view);
    view.host.report("cut", view.given);
  };
  parent.append(view.root);
  view.resize = new ResizeObserver(() => redraw(view));
  view.resize.observe(view.root);
  return view;
}

function cutOf(view) {
  return Number((view.input.value / view.meta.counts.length).toFixed(4));
}

function redraw(view) {
  const { counts, heads, texts, score } = view.meta,
    at = Number(view.input.value);
  say(view.count, heads[at]);
  say(view.text, texts[at]);
  view.input.setAttribute("aria-valuetext", `${cutOf(view)}: ${heads[at]}`);
  if (!view.canvas.clientWidth) return;
  const [g, width, height] = sizeCanvas(view.canvas),
    colors = theme(view.root),
    bottom = height - BELOW,
    most = Math.log1p(Math.max(1, ...counts));
  const x = (k) => 1 + ((width - 2) * k) / counts.length;
  counts.forEach((count, k) => {
    const high = count ? Math.max(3, (bottom - 6) * (Math.log1p(count) / most)) : 0;
    g.fillStyle = k >= at ? rgb(ORANGE) : rgb(BLUE, 0.75);
    g.fillRect(x(k) + 0.5, bottom - high, Math.max(1, x(k + 1) - x(k) - 1), high);
  });
  line(g, [[0, bottom], [width, bottom]], rgb(GRAY, 0.8), 1); // prettier-ignore
  line(g, [[x(at), 0], [x(at), bottom]], colors.ink, 2); // prettier-ignore
  g.fillStyle = colors.ink;
  g.beginPath();
  g.arc(x(at), 6, 5, 0, 2 * Math.PI);
  g.fill();
  tick(g, "0", 0, height - 4, width, "left");
  tick(g, score, width / 2, height - 4, width);
  tick(g, "1", width, height - 4, width, "right");
}
