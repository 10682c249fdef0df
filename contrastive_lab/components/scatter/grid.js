// Points sorted into square cells, so that a part of the map is found without a look at all of it. Within a cell they
// stand in a mixed order, which is the order in which they are drawn: no category covers the others.

const SIDES = [64, 256]; // cells along each side: of a map with few points, and of one with more than
const MANY = 50_000;

/**
 * All points, each once, in an order that is always the same and has nothing to do with theirs.
 *
 * @param {number} n
 */
export function mixed(n) {
  const order = new Uint32Array(n);
  for (let i = 0; i < n; i++) order[i] = i;
  for (let i = n - 1, seed = 1; i > 0; i--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((seed / 4294967296) * (i + 1)),
      at = order[i];
    order[i] = order[j];
    order[j] = at;
  }
  return order;
}

/**
 * The cells of a square of side `box.span`: `order` (n) the points cell by cell, `start` (side² + 1) where each cell
 * begins in it, `xy` (2·n) their places in that order. What lies outside the square is in the cells at its edge.
 *
 * @param {Float32Array} xy (2·n)
 * @param {{ x0: number, y0: number, span: number }} box
 * @param {Uint32Array} first (n) the order within a cell
 */
export function sortIntoCells(xy, box, first) {
  const n = first.length,
    side = SIDES[Number(n > MANY)],
    cells = { side, box, start: new Uint32Array(side * side + 1), order: new Uint32Array(n), xy: new Float32Array(0) },
    at = new Uint32Array(n),
    counts = cells.start,
    { x0, y0, span } = box,
    last = side - 1,
    line = (v) => (v > 0 ? (v < last ? v | 0 : last) : 0); // clamped; of no number 0
  for (let q = 0; q < n; q++) {
    const i = first[q],
      c = line(((xy[2 * i + 1] - y0) / span) * side) * side + line(((xy[2 * i] - x0) / span) * side);
    at[q] = c;
    counts[c + 1]++;
  }
  for (let c = 0; c < side * side; c++) cells.start[c + 1] += cells.start[c];
  const next = cells.start.slice();
  for (let q = 0; q < n; q++) cells.order[next[at[q]]++] = first[q];
  cells.xy = placesIn(cells, xy);
  return cells;
}

/**
 * Places (2·n) in the order of the cells: read one after the other, a million take a few milliseconds.
 *
 * @param {any} cells
 * @param {Float32Array} xy
 */
export function placesIn(cells, xy) {
  const sorted = new Float32Array(xy.length);
  for (let q = 0; q < cells.order.length; q++) {
    sorted[2 * q] = xy[2 * cells.order[q]];
    sorted[2 * q + 1] = xy[2 * cells.order[q] + 1];
  }
  return sorted;
}

const clamp = (k, side) => Math.min(side - 1, Math.max(0, k || 0));

const columnOf = ({ side, box }, x) => clamp(Math.floor(((x - box.x0) / box.span) * side), side);
const lineOf = ({ side, box }, y) => clamp(Math.floor(((y - box.y0) / box.span) * side), side);

/**
 * Where in `cells.order` the points of a rectangle stand: [from, to, from, to, …]. They are those of all cells that
 * it touches, so some lie beside it.
 *
 * @param {any} cells
 * @param {number[]} rectangle x0, x1, y0, y1
 */
export function slicesIn(cells, [x0, x1, y0, y1]) {
  const { side, start } = cells,
    [p0, p1] = [columnOf(cells, x0), columnOf(cells, x1)],
    slices = [];
  for (let q = lineOf(cells, y0); q <= lineOf(cells, y1); q++) {
    const from = start[q * side + p0],
      to = start[q * side + p1 + 1];
    if (from === to) continue;
    if (slices[slices.length - 1] === from) slices[slices.length - 1] = to;
    else slices.push(from, to);
  }
  return slices;
}

/** Which cells (side²) a polygon's edges may cross. Those at the edge of the square hold what lies beyond it, and
 * count as crossed. */
function crossedBy(cells, path) {
  const { side, box } = cells,
    crossed = new Uint8Array(side * side),
    wide = box.span / side;
  for (let k = 0; k < side; k++)
    for (const c of [k, (side - 1) * side + k, k * side, k * side + side - 1]) crossed[c] = 1;
  for (let a = 0, b = path.length - 1; a < path.length; b = a++) {
    const [[x0, y0], [x1, y1]] = path[a][1] < path[b][1] ? [path[a], path[b]] : [path[b], path[a]],
      at = (y) => x0 + ((x1 - x0) * (y - y0)) / (y1 - y0);
    for (let q = lineOf(cells, y0); q <= lineOf(cells, y1); q++) {
      const low = Math.max(y0, box.y0 + q * wide),
        high = Math.min(y1, box.y0 + (q + 1) * wide),
        ends = y1 > y0 ? [at(low), at(high)] : [x0, x1],
        left = columnOf(cells, Math.min(...ends)) - 1, // a cell more at either side, for what is rounded
        right = columnOf(cells, Math.max(...ends)) + 1;
      crossed.fill(1, q * side + Math.max(0, left), q * side + Math.min(side - 1, right) + 1);
    }
  }
  return crossed;
}

/**
 * Whether a polygon encloses a place, by the even-odd rule.
 *
 * @param {Float64Array} path x and y of each corner in turn
 * @param {number} x
 * @param {number} y
 */
export function encloses(path, x, y) {
  let odd = false,
    xb = path[path.length - 2],
    yb = path[path.length - 1];
  for (let k = 0; k < path.length; k += 2) {
    const xa = path[k],
      ya = path[k + 1];
    if (ya > y !== yb > y && x < ((xb - xa) * (y - ya)) / (yb - ya) + xa) odd = !odd;
    xb = xa;
    yb = ya;
  }
  return odd;
}

/**
 * The points that a polygon encloses, in no order. A cell that no edge crosses is in it or beside it as a whole.
 *
 * @param {any} cells
 * @param {number[][]} path on the map
 */
export function pointsInside(cells, path) {
  const { side, box, start, order, xy } = cells,
    found = [],
    crossed = crossedBy(cells, path),
    outline = Float64Array.from(path.flat()),
    middle = (k) => ((k + 0.5) * box.span) / side,
    xs = path.map((p) => p[0]),
    ys = path.map((p) => p[1]),
    [left, right] = [columnOf(cells, Math.min(...xs)), columnOf(cells, Math.max(...xs))];
  for (let q = lineOf(cells, Math.min(...ys)); q <= lineOf(cells, Math.max(...ys)); q++)
    for (let p = left; p <= right; p++) {
      const c = q * side + p;
      if (start[c] === start[c + 1]) continue;
      if (!crossed[c] && !encloses(outline, box.x0 + middle(p), box.y0 + middle(q))) continue;
      for (let k = start[c]; k < start[c + 1]; k++)
        if (!crossed[c] || encloses(outline, xy[2 * k], xy[2 * k + 1])) found.push(order[k]);
    }
  return found;
}
