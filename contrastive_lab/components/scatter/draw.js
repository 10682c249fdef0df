// What a map shows: points or their density, names, outline and count, at most once a frame.

import { drawDensity } from "./density.js";
import { slicesIn } from "./grid.js";
import { followView } from "./in_view.js";
import { drawMedoids } from "./medoids.js";
import { drawCrowds } from "./names.js";
import { drawPartners } from "./partners.js";
import { COLORS, DENSE, drawPoints, pointSize } from "./points.js";
import { drawNames } from "./side_by_side.js";
import { drawNear } from "./ties.js";
import { outline, view } from "./view.js";
import { line, sizeCanvas, theme } from "../shared/canvas.js";
import { isTouched, say } from "../shared/dom.js";
import { _ } from "../shared/locale.js";

const RINGED = 40; // selected points that are ringed: so few are lost among the others

/** @param {ScatterState} map */
export function draw(map) {
  if (!map.xy || !map.root.isConnected || !map.stage.clientWidth) return;
  if (map.stale) {
    map.stale = false;
    const slices = inView(map);
    map.shown = countShown(map, slices);
    map.isDense = map.shown > DENSE;
    (map.isDense ? drawDensity : drawPoints)(map, slices);
    drawPartners(map);
    followView(map);
  }
  drawOver(map);
  if (map.pending) {
    map.timings.push(performance.now() - map.pending);
    map.pending = 0;
  }
}

const EDGE = 8; // pixels that a point reaches into the view from beyond it

/** Where the points in view stand in the order of the cells. */
function inView(map) {
  const v = view(map),
    w = map.stage.clientWidth,
    h = map.stage.clientHeight;
  if (map.cells.isStale) return [0, map.n];
  return slicesIn(map.cells, [
    (-EDGE - v.x) / v.scale,
    (w + EDGE - v.x) / v.scale,
    (v.y - h - EDGE) / v.scale,
    (v.y + EDGE) / v.scale,
  ]);
}

function countShown(map, slices) {
  const hides = Uint8Array.from({ length: 256 }, (x, k) => Number(map.hidden.has(k)));
  let count = 0;
  for (let s = 0; s < slices.length; s += 2) {
    count += slices[s + 1] - slices[s];
    if (map.hidden.size) for (let q = slices[s]; q < slices[s + 1]; q++) count -= hides[map.cells.color[q]];
  }
  return count;
}

/** What is under the pointer, the path that is being drawn, and the count. */
function drawOver(map) {
  const [g] = sizeCanvas(map.over),
    v = view(map),
    size = pointSize(map),
    { accent } = theme(map.root);
  const ring = (i, width) => {
    g.strokeStyle = accent;
    g.lineWidth = width;
    g.beginPath();
    g.arc(map.xy[2 * i] * v.scale + v.x, v.y - map.xy[2 * i + 1] * v.scale, size + 1, 0, 2 * Math.PI);
    g.stroke();
  };
  drawNear(map, g);
  drawCrowds(map, g);
  if (map.picked.length <= RINGED) for (const row of map.picked) for (let i = row; i < map.n; i += map.rows) ring(i, 1);
  drawMedoids(map, g);
  if (map.hover >= 0) for (let i = map.hover % map.rows; i < map.n; i += map.rows) ring(i, 2);
  if (map.path && map.path.length > 1) {
    const path = outline(map);
    line(g, [...path, path[0]], accent, 1.5);
  }
  if (map.meta.panels) drawNames(map, g, v);
  map.kind.hidden = !map.isDense;
  if (map.isDense)
    say(
      map.kind,
      map.meta.palette.length > COLORS
        ? _("density of {count} points; zoom in for the points and their shapes", { count: many(map.shown) })
        : _("density of {count} points; zoom in for the points themselves", { count: many(map.shown) }),
    );
  const rows = many(map.rows),
    touched = isTouched() && _("{rows} points · pinch to zoom", { rows }),
    whole = touched || _("{rows} points · Ctrl and wheel zoom", { rows });
  say(
    map.count,
    map.missed ||
      (map.picked.length
        ? _("{picked} of {rows} selected", { picked: many(map.picked.length), rows: many(map.rows) })
        : map.meta.note || (map.meta.fits ? whole : _("{rows} points", { rows }))),
  );
}

const many = (n) => n.toLocaleString("en");
