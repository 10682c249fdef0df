// An SVG path's data as the operators of a PDF page: moves, lines and cubic curves.

const TOKENS = /[a-z]|[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?/gi,
  COUNTS = { m: 2, l: 2, h: 1, v: 1, c: 6, s: 4, q: 4, t: 2, a: 7, z: 0 };

/** @param {number} v */
export const short = (v) => String(Math.round(v * 1000) / 1000);

/**
 * @param {string} data the attribute `d`
 */
export function pathOperators(data) {
  const tokens = data.match(TOKENS) ?? [],
    out = [];
  let at = 0,
    command = "",
    here = [0, 0],
    start = here,
    control = here; // of the curve before, for s and t
  const emit = (points, operator) => out.push(`${points.flat().map(short).join(" ")} ${operator}`);
  /** @type {(a: number[], b: number[], end: number[]) => void} */
  const curve = (a, b, end) => {
    emit([a, b, end], "c");
    here = end;
  };
  while (at < tokens.length) {
    if (/[a-z]/i.test(tokens[at])) command = tokens[at++];
    const kind = command.toLowerCase(),
      before = here,
      v = tokens.slice(at, at + COUNTS[kind]).map(Number),
      [ox, oy] = command === kind ? here : [0, 0],
      point = (k) => [v[k] + ox, v[k + 1] + oy],
      mirrored = [2 * here[0] - control[0], 2 * here[1] - control[1]];
    at += COUNTS[kind];
    control = null;
    if (kind === "z") {
      out.push("h");
      here = start;
    } else if (kind === "m") {
      start = here = point(0);
      emit([here], "m");
      command = command === "m" ? "l" : "L";
    } else if (kind === "c") curve(point(0), (control = point(2)), point(4));
    else if (kind === "s") curve(mirrored, (control = point(0)), point(2));
    else if (kind === "q" || kind === "t") {
      const middle = kind === "q" ? point(0) : mirrored,
        end = point(kind === "q" ? 2 : 0),
        third = (/** @type {number[]} */ [x, y]) => [x + (2 / 3) * (middle[0] - x), y + (2 / 3) * (middle[1] - y)];
      curve(third(here), third(end), end);
      control = middle;
    } else if (kind === "a") for (const [a, b, end] of arc(here, v, point(5))) curve(a, b, end);
    else {
      here = kind === "h" ? [v[0] + ox, here[1]] : kind === "v" ? [here[0], v[0] + oy] : point(0);
      emit([here], "l");
    }
    control ??= kind === "z" ? before : here;
    if (!COUNTS[kind] && /\d/.test(tokens[at] ?? "")) break; // numbers after a z: no path
  }
  return out.join("\n");
}

/**
 * An elliptic arc as cubic curves, by the SVG standard's appendix on arcs.
 * @param {number[]} start
 * @param {number[]} shape
 * @param {number[]} stop
 * @returns {number[][][]}
 */
function arc([x1, y1], [rx, ry, degrees, large, sweep], [x2, y2]) {
  if (!rx || !ry || (x1 === x2 && y1 === y2))
    return [
      [
        [x1, y1],
        [x2, y2],
        [x2, y2],
      ],
    ];
  const turn = (degrees * Math.PI) / 180,
    [cos, sin] = [Math.cos(turn), Math.sin(turn)],
    dx = (cos * (x1 - x2) + sin * (y1 - y2)) / 2,
    dy = (cos * (y1 - y2) - sin * (x1 - x2)) / 2,
    grow = Math.sqrt(Math.max(1, (dx / rx) ** 2 + (dy / ry) ** 2)),
    [a, b] = [Math.abs(rx) * grow, Math.abs(ry) * grow],
    over = (a * dy) ** 2 + (b * dx) ** 2,
    f = (large === sweep ? -1 : 1) * Math.sqrt(Math.max(0, ((a * b) ** 2 - over) / over)),
    [px, py] = [(f * a * dy) / b, (-f * b * dx) / a],
    [cx, cy] = [cos * px - sin * py + (x1 + x2) / 2, sin * px + cos * py + (y1 + y2) / 2],
    from = Math.atan2((dy - py) / b, (dx - px) / a);
  let angle = Math.atan2((-dy - py) / b, (-dx - px) / a) - from;
  if (sweep && angle < 0) angle += 2 * Math.PI;
  if (!sweep && angle > 0) angle -= 2 * Math.PI;
  const n = Math.ceil(Math.abs(angle) / (Math.PI / 2) - 1e-9),
    step = angle / n,
    k = (4 / 3) * Math.tan(step / 4);
  const place = (u, v) => [cx + cos * a * u - sin * b * v, cy + sin * a * u + cos * b * v];
  return Array.from({ length: n }, (_, q) => {
    const [s, t] = [from + q * step, from + (q + 1) * step],
      end = q === n - 1 ? [x2, y2] : place(Math.cos(t), Math.sin(t));
    return [
      place(Math.cos(s) - k * Math.sin(s), Math.sin(s) + k * Math.cos(s)),
      place(Math.cos(t) + k * Math.sin(t), Math.sin(t) - k * Math.cos(t)),
      end,
    ];
  });
}
