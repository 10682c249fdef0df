// In which order the rows and columns of the matrix stand: as they came, by group, or clustered.

import { turned } from "./directions.js";

/**
 * Rows and columns of the matrix in the chosen order; clusters are found once for a batch.
 *
 * @param {LossViewState} lab
 * @returns {number[][]}
 */
export function orderOf(lab) {
  const plain = (m) => Array.from({ length: m }, (_, k) => k);
  if (lab.order === "group") return [plain(lab.n), plain(lab.w)];
  return (lab.cache.clusters ||= clustersOf(lab));
}

/**
 * A square batch is clustered by its scores, a rectangular one by the profiles of its rows and of its columns: alike
 * is what is alike to the same.
 *
 * @param {{ n: number, w: number, S: Float32Array, meta: any }} parts
 * @returns {number[][]}
 */
export function clustersOf({ n, w, S, meta }) {
  if (n === w && meta.names.every((name, k) => name === meta.columnNames[k])) {
    const sign = meta.scoreName.includes("distance") ? 0.5 : -0.5;
    const order = clustered(
      Float32Array.from(S, (s, k) => sign * (s + S[(k % n) * n + Math.floor(k / n)])),
      n,
    );
    return [order, order];
  }
  return [clustered(profiles(S, n, w), n), clustered(profiles(turned(S, n, w), w, n), w)];
}

/** Squared distances (n·n) between the rows of A (n·w). */
function profiles(A, n, w) {
  const D = new Float32Array(n * n);
  for (let i = 0; i < n; i++)
    for (let k = 0; k < i; k++) {
      let sum = 0;
      for (let j = 0; j < w; j++) {
        const d = A[i * w + j] - A[k * w + j];
        sum += d * d;
      }
      D[i * n + k] = D[k * n + i] = sum;
    }
  return D;
}

/** Leaves of an average-linkage tree over dissimilarities D (n·n), by chains of nearest neighbors;
 *  where two clusters join, the ends that are nearest to each other meet. */
function clustered(D, n) {
  const d = D.slice(),
    size = new Float64Array(n).fill(1),
    leaves = Array.from({ length: n }, (_, k) => [k]);
  const active = leaves.map(([k]) => k),
    chain = [];
  while (active.length > 1) {
    if (!chain.length) chain.push(active[0]);
    const a = chain[chain.length - 1],
      before = chain[chain.length - 2];
    let b = before ?? active.find((k) => k !== a);
    for (const k of active) if (k !== a && d[a * n + k] < d[a * n + b]) b = k;
    if (b !== before) {
      chain.push(b);
      continue;
    }
    chain.length -= 2;
    for (const k of active)
      if (k !== a && k !== b)
        d[a * n + k] = d[k * n + a] = (size[a] * d[a * n + k] + size[b] * d[b * n + k]) / (size[a] + size[b]);
    size[a] += size[b];
    leaves[a] = joined(leaves[a], leaves[b], (x, y) => D[x * n + y]);
    active.splice(active.indexOf(b), 1);
  }
  return n ? leaves[active[0]] : [];
}

function joined(a, b, far) {
  const last = (x) => x[x.length - 1],
    ways = [
      [a, b, last(a), b[0]],
      [b, a, last(b), a[0]],
      [a.slice().reverse(), b, a[0], b[0]],
      [a, b.slice().reverse(), last(a), last(b)],
    ];
  const [x, y] = ways.reduce((best, way) => (far(way[2], way[3]) < far(best[2], best[3]) ? way : best));
  return x.concat(y);
}
