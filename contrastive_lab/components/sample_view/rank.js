// The rank of a sample among all while the knob moves.

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
