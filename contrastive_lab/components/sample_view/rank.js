// The rank of a sample among all while the knob moves.

import { GRAY, ORANGE, line, rgb, sizeCanvas, theme } from "../shared/canvas.js";
import { number } from "../shared/dom.js";
import { _ } from "../shared/locale.js";

/** Place of a value on the knob's own scale, linear or logarithmic. */
function onScale(knob, v) {
  return knob && knob.log ? Math.log(v) : v;
}

/**
 * Rank of this sample among all at a value of the knob; losses between two known values are interpolated. 0: it has
 * no loss.
 *
 * @param {SampleViewState} view
 * @param {number} v
 */
export function rankAt(view, v) {
  const { grid, n, row, knob } = view.meta,
    g = grid.length;
  let k = 0;
  while (k < g - 2 && grid[k + 1] < v) k++;
  const a = onScale(knob, grid[k]),
    b = onScale(knob, grid[k + 1]);
  const t = b > a ? Math.min(1, Math.max(0, (onScale(knob, v) - a) / (b - a))) : 0;
  const at = (i) => (1 - t) * view.losses[i * g + k] + t * view.losses[i * g + k + 1];
  const own = at(row);
  if (Number.isNaN(own)) return 0;
  let above = 0;
  for (let i = 0; i < n; i++) if (at(i) > own) above++;
  return above + 1;
}

/** @param {SampleViewState} view */
export function drawCurve(view) {
  const { meta } = view;
  if (!meta || !meta.grid.length || !view.curve.clientWidth) return;
  const [g, width, height] = sizeCanvas(view.curve),
    colors = theme(view.root),
    pad = 34;
  const low = onScale(meta.knob, meta.grid[0]),
    high = onScale(meta.knob, meta.grid[meta.grid.length - 1]);
  const x = (v) => pad + ((width - pad - 10) * (onScale(meta.knob, v) - low)) / (high - low);
  const y = (rank) => 10 + ((height - 34) * (rank - 1)) / Math.max(1, meta.n - 1);
  g.fillStyle = colors.ink;
  g.fillText("1", 4, y(1) + 4);
  g.fillText(String(meta.n), 4, y(meta.n));
  for (const v of [meta.grid[0], meta.grid[meta.grid.length - 1]]) {
    const text = number(v);
    g.fillText(text, Math.min(width - g.measureText(text).width - 2, x(v)), height - 6);
  }
  line(
    g,
    [
      [pad, y(1)],
      [pad, y(meta.n)],
      [width - 10, y(meta.n)],
    ],
    rgb(GRAY, 0.6),
    1,
  );
  line(
    g,
    meta.grid.map((v, k) => [x(v), y(view.ranks[k])]),
    colors.accent,
  );
  const rank = rankAt(view, view.value),
    at = Math.min(width - 10, Math.max(pad, x(view.value)));
  g.fillStyle = rgb(ORANGE);
  g.beginPath();
  g.arc(at, y(rank), 5, 0, 2 * Math.PI);
  g.fill();
  view.curve.setAttribute(
    "aria-label",
    _("Rank {rank} of {n} at {setting}", { rank, n: meta.n, setting: view.readout.textContent }),
  );
}
