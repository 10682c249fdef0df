// Lines between partners in two towers, once they are asked for: below the points, of selected rows alone if there are.

import { schedule, view } from "./view.js";
import { theme } from "../shared/canvas.js";
import { el } from "../shared/dom.js";
import { _ } from "../shared/locale.js";

const INK = 400; // lines that together are as dark as a few; more are paler
const SELECTED = 0.7; // opacity of a selected row's lines

/**
 * The button that shows and hides the lines, unseen until there are partners.
 *
 * @param {ScatterState} map
 */
export function partnersButton(map) {
  const button = el("button", { type: "button", "aria-pressed": "false", hidden: "" }, _("partners"));
  button.onclick = () => {
    map.withLines = !map.withLines;
    button.setAttribute("aria-pressed", String(map.withLines));
    schedule(map, true);
  };
  return button;
}

/**
 * Take pairs of rows from the server; none hide the button.
 *
 * @param {ScatterState} map
 * @param {Uint8Array | undefined} bytes of uint32, two rows for each line
 */
export function loadPartners(map, bytes) {
  map.partners = bytes?.length ? new Uint32Array(bytes.slice().buffer) : null;
  map.lines.hidden = !map.partners;
  const shown = (map.partners?.length ?? 0) / 2,
    total = map.meta.partnerCount;
  map.lines.title =
    shown < total
      ? _("lines between partners, {shown} of {total}", {
          shown: shown.toLocaleString("en"),
          total: total.toLocaleString("en"),
        })
      : _("lines between partners");
}

/**
 * The pairs that are drawn, two rows each: of shown categories; where rows are selected, their own alone.
 *
 * @param {ScatterState} map
 * @returns {number[]}
 */
export function drawnPartners({ partners, picked, lit, hidden, color }) {
  const drawn = [];
  for (let k = 0; k < partners.length; k += 2) {
    const a = partners[k],
      b = partners[k + 1];
    if (hidden.has(color[a]) || hidden.has(color[b]) || (picked.length && !lit[a] && !lit[b])) continue;
    drawn.push(a, b);
  }
  return drawn;
}

/**
 * The lines as one path of SVG and its opacity; [] while they are not shown.
 *
 * @param {ScatterState} map
 * @param {(x: number, y: number) => number[]} place of a point of the map
 */
export function partnerPaths(map, place) {
  if (!map.partners || !map.withLines) return [];
  const drawn = drawnPartners(map),
    at = (i) =>
      place(map.xy[2 * i], map.xy[2 * i + 1])
        .map((c) => c.toFixed(1))
        .join(" ");
  let d = "";
  for (let k = 0; k < drawn.length; k += 2) d += `M${at(drawn[k])}L${at(drawn[k + 1])}`;
  return d ? [{ d, alpha: opacity(map, drawn.length / 2) }] : [];
}

/**
 * Draw the lines below what is on the canvas.
 *
 * @param {ScatterState} map
 */
export function drawPartners(map) {
  const v = view(map),
    [path] = partnerPaths(map, (x, y) => [x * v.scale + v.x, v.y - y * v.scale]);
  if (!path) return;
  const g = map.canvas.getContext("2d");
  g.save();
  g.globalCompositeOperation = "destination-over";
  g.globalAlpha = path.alpha;
  g.strokeStyle = theme(map.root).ink;
  g.lineWidth = 1;
  g.stroke(new Path2D(path.d));
  g.restore();
}

function opacity({ picked }, lines) {
  return picked.length ? SELECTED : Math.max(0.06, Math.min(0.4, INK / (4 * Math.max(1, lines))));
}
