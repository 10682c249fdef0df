// What a map shows: points, names, outline and count, at most once a frame; and the same as a PNG.

import { drawMedoids } from "./medoids.js";
import { drawPoints, pointSize } from "./points.js";
import { drawNames } from "./side_by_side.js";
import { outline, view } from "./view.js";
import { line, sizeCanvas, theme } from "../shared/canvas.js";
import { say } from "../shared/dom.js";

const RINGED = 40; // selected points that are ringed: so few are lost among the others

/**
 * @param {ScatterState} map
 */
export function draw(map) {
  if (!map.xy || !map.root.isConnected || !map.stage.clientWidth) return;
  if (map.stale) drawPoints(map);
  drawOver(map);
  map.stale = false;
  if (map.pending) {
    map.timings.push(performance.now() - map.pending);
    map.pending = 0;
  }
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
  drawMedoids(map, g);
  if (map.picked.length <= RINGED) for (const row of map.picked) for (let i = row; i < map.n; i += map.rows) ring(i, 1);
  if (map.hover >= 0) ring(map.hover, 2);
  if (map.path && map.path.length > 1) {
    const path = outline(map);
    line(g, [...path, path[0]], accent, 1.5);
  }
  if (map.meta.panels) drawNames(map, g, v);
  say(
    map.count,
    map.missed ||
      (map.picked.length
        ? `${many(map.picked.length)} of ${many(map.rows)} selected`
        : map.meta.note || `${many(map.rows)} points`),
  );
}

const many = (n) => n.toLocaleString("en");
