// One anchor of the hinge family: the contrastive loss on pairs, and the triplet loss.

/**
 * One anchor of the contrastive loss on pairs: S holds distances.
 *
 * @type {RowKernel}
 */
export function pairRow(S, M, at, w, kernel, i, out) {
  const margin = kernel.margin,
    squared = kernel.squared;
  let sum = 0,
    count = 0,
    active = 0,
    negatives = 0;
  for (let j = 0; j < w; j++) if (M[at + j] === 1 || M[at + j] === 2) count++;
  for (let j = 0; j < w; j++) {
    const m = M[at + j],
      d = S[at + j];
    if (m === 1) {
      sum += squared ? d * d : (d * d) / 2;
      out.grad[at + j] = (squared ? 2 * d : d) / count;
      out.pair[at + j] = 1;
    } else if (m === 2) {
      negatives++;
      const gap = margin - (squared ? d * d : d);
      if (gap > 0) {
        active++;
        sum += squared ? gap : (gap * gap) / 2;
        out.grad[at + j] = (squared ? -2 * d : -gap) / count;
        out.pair[at + j] = 1;
      }
    }
  }
  out.loss[i] = count ? sum / count : 0;
  out.weight[i] = count;
  out.active[i] = out.effective[i] = active;
  out.negatives[i] = negatives;
}

/** How many of the sorted values are below x (or not above it). */
function below(sorted, x, orEqual) {
  let lo = 0,
    hi = sorted.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (sorted[mid] < x || (orEqual && sorted[mid] === x)) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

function sortedNegatives(S, M, at, w, i, out) {
  if (out.sorted[i] && out.sorted[i].S === S && out.sorted[i].M === M) return out.sorted[i];
  const columns = [];
  for (let j = 0; j < w; j++) if (M[at + j] === 2) columns.push(j);
  columns.sort((a, b) => S[at + a] - S[at + b]);
  const d = Float64Array.from(columns, (j) => S[at + j]);
  const sums = new Float64Array(d.length + 1);
  for (let k = 0; k < d.length; k++) sums[k + 1] = sums[k] + d[k];
  return (out.sorted[i] = { S, M, columns, d, sums });
}

/**
 * One anchor of the triplet loss: S holds squared distances.
 *
 * @type {RowKernel}
 */
export function tripletRow(S, M, at, w, kernel, i, out) {
  const { columns, d, sums } = sortedNegatives(S, M, at, w, i, out),
    nN = d.length;
  const positives = [];
  for (let j = 0; j < w; j++) if (M[at + j] === 1) positives.push(j);
  out.negatives[i] = nN;
  out.loss[i] = out.weight[i] = out.active[i] = out.hard[i] = out.effective[i] = 0;
  if (!positives.length || !nN) return;
  const pull = new Float64Array(nN + 1); // differences of how often each negative is counted
  let sum = 0,
    active = 0,
    counted = 0,
    inside = 0,
    hard = 0;
  for (const p of positives) {
    const c = below(d, S[at + p] + kernel.margin, false);
    inside += c;
    hard += Math.min(c, below(d, S[at + p], true));
  }
  out.active[i] = inside;
  out.hard[i] = hard;
  const add = (p, lo, hi, share, value, isActive) => {
    sum += value;
    if (!isActive) return;
    out.grad[at + p] += share * (hi - lo);
    pull[lo] += share;
    pull[hi] -= share;
  };
  if (kernel.mining === "hard") {
    let far = -Infinity;
    for (const p of positives) far = Math.max(far, S[at + p]);
    const ties = positives.filter((p) => S[at + p] === far),
      high = below(d, d[0], true);
    const hinge = far - d[0] + kernel.margin;
    counted = 1;
    if (hinge > 0) {
      active = 1;
      sum = hinge;
      for (const p of ties) out.grad[at + p] = 1 / ties.length;
      pull[0] += 1 / high;
      pull[high] -= 1 / high;
    }
  } else {
    for (const p of positives) {
      const s = S[at + p],
        reach = s + kernel.margin;
      if (kernel.mining === "all") {
        const c = below(d, reach, false);
        add(p, 0, c, 1, c * reach - sums[c], c > 0);
        active += c;
        counted += nN;
      } else {
        const lo = below(d, s, true);
        if (lo >= nN || d[lo] >= reach) continue;
        const hi = below(d, d[lo], true);
        add(p, lo, hi, 1 / (hi - lo), reach - d[lo], true);
        active++;
        counted++;
      }
    }
  }
  const weight = kernel.average === "active" ? active : counted;
  let run = 0,
    touched = 0;
  for (let k = 0; k < nN; k++) {
    run += pull[k];
    if (run > 1e-12) touched++;
    if (weight > 0) out.grad[at + columns[k]] = run > 1e-12 ? -run / weight : 0;
  }
  for (const p of positives) out.grad[at + p] = weight > 0 ? out.grad[at + p] / weight : 0;
  for (let j = 0; j < w; j++) out.pair[at + j] = out.grad[at + j] !== 0 ? 1 : 0;
  out.loss[i] = weight > 0 ? sum / weight : 0;
  out.weight[i] = weight;
  out.effective[i] = touched;
}
