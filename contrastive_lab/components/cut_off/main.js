// A histogram with a cut-off: dragged, clicked, or moved by the arrow keys; what lies above it is told at once.

import { GRAY, ORANGE, line, rgb, sizeCanvas, theme } from "../shared/canvas.js";
import { el, say } from "../shared/dom.js";
import { _ } from "../shared/locale.js";
import { inApp, partOf } from "../shared/part.js";

const AFTER_KEYS = 250; // milliseconds of rest before the page hears where keys moved the cut

export const mount = partOf("_cutoff", build, show, redraw, (view) => clearTimeout(view.timer));

export default inApp(mount);

function show(view, { meta }) {
  view.meta = meta;
  view.input.max = meta.counts.length;
  heard(view, Math.round(meta.cut * meta.counts.length));
  redraw(view);
}

function build() {
  /** @type {any} */
  const view = { given: null, sent: [], held: false, timer: 0 };
  view.canvas = el("canvas", { "aria-hidden": "true" });
  view.input = el("input", { type: "range", min: 0, step: 1, "aria-label": _("Cut-off") });
  view.count = el("p", { class: "count", role: "status" });
  view.field = el("div", { class: "field" }, view.canvas, view.input);
  view.root = el("div", { class: "cutoff" }, view.field, view.count);
  view.input.oninput = () => {
    view.held = true;
    redraw(view);
  };
  view.input.onkeydown = (event) => {
    if (event.key !== "Tab") view.byKey = true;
  };
  view.input.onpointerdown = () => {
    view.byKey = false; // in braces: a handler that returns false keeps the browser from moving the handle
  };
  view.input.onchange = () => {
    clearTimeout(view.timer);
    if (view.byKey) view.timer = setTimeout(() => report(view), AFTER_KEYS);
    else report(view);
  };
  view.input.onblur = () => {
    if (view.held) report(view);
  };
  return view;
}

function report(view) {
  clearTimeout(view.timer);
  view.held = false;
  if (!view.sent.length && Number(view.input.value) === view.given) return;
  view.sent.push(Number(view.input.value));
  view.send("cut", cutOf(view));
}

/**
 * The cut that the server has moves the handle where it is news: while the handle is held, or while an answer to a
 * later report is on its way, it is not.
 *
 * @param {{ given: number | null, sent: number[], held: boolean, input: { value: any } }} view
 * @param {number} cut as a position of the handle
 */
export function heard(view, cut) {
  const isNew = view.given !== cut,
    own = view.sent.lastIndexOf(cut);
  view.given = cut;
  if (own >= 0) view.sent.splice(0, own + 1);
  if (isNew && own < 0 && !view.sent.length && !view.held) view.input.value = cut;
}

function cutOf(view) {
  return Number((view.input.value / view.meta.counts.length).toFixed(4));
}

function redraw(view) {
  const { counts, heads, title } = view.meta,
    at = Number(view.input.value);
  say(view.count, heads[at]);
  view.field.title = `${heads[at]} (${title})`; // a narrow window has no room for the count
  view.input.setAttribute("aria-valuetext", `${heads[at]}`);
  const [g, width, height] = sizeCanvas(view.canvas),
    colors = theme(view.root),
    most = Math.log1p(Math.max(1, ...counts));
  const x = (k) => 1 + ((width - 2) * k) / counts.length;
  counts.forEach((count, k) => {
    const high = count ? Math.max(3, (height - 10) * (Math.log1p(count) / most)) : 0;
    g.fillStyle = k >= at ? rgb(ORANGE) : rgb(GRAY);
    g.fillRect(x(k) + 0.5, height - high, Math.max(1, x(k + 1) - x(k) - 1), high);
  });
  line(g, [[0, height - 0.5], [width, height - 0.5]], rgb(GRAY, 0.8), 1); // prettier-ignore
  line(g, [[x(at), 0], [x(at), height]], colors.ink, 2); // prettier-ignore
  g.fillStyle = colors.ink;
  g.beginPath();
  g.arc(Math.min(width - 4, Math.max(4, x(at))), 5, 4, 0, 2 * Math.PI);
  g.fill();
}
