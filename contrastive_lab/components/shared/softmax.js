// One anchor of the softmax family: loss, weights, gradients, effective negatives.

/**
 * @param {number} a
 * @param {number} b
 */
export function logAddExp(a, b) {
  if (a === -Infinity) return b;
  if (b === -Infinity) return a;
  const m = Math.max(a, b);
  return m + Math.log1p(Math.exp(-Math.abs(a - b)));
}

/**
 * One anchor of the softmax family; positives and negatives are summed apart, each from its top.
 *
 * @type {RowKernel}
 */
export function softmaxRow(S, M, at, w, kernel, i, out) {
  const scale = (kernel.sign || 1) / kernel.temperature;
  let topP = -Infinity,
    topN = -Infinity,
    nP = 0,
    nN = 0;
  for (let j = 0; j < w; j++) {
    const m = M[at + j];
    if (m === 1) {
      nP++;
      topP = Math.max(topP, S[at + j] * scale);
    } else if (m === 2) {
      nN++;
      topN = Math.max(topN, S[at + j] * scale);
    }
  }
  let sumP = 0,
    sumN = 0,
    meanP = 0,
    spread = 0;
  for (let j = 0; j < w; j++) {
    const m = M[at + j];
    if (m === 1) {
      const l = S[at + j] * scale;
      meanP += l / nP;
      sumP += Math.exp(l - topP);
    } else if (m === 2) {
      const l = S[at + j] * scale - topN,
        e = Math.exp(l);
      out.pair[at + j] = e;
      sumN += e;
      if (e > 0) spread += e * l;
    }
  }
  const lseP = nP ? topP + Math.log(sumP) : -Infinity;
  const lseN = nN ? topN + Math.log(sumN) : -Infinity;
  const lseA = logAddExp(lseP, lseN);
  out.negatives[i] = nN;
  out.active[i] = nN;
  out.effective[i] = nN ? Math.exp(Math.log(sumN) - spread / sumN) : 0;
  if (!nP) {
    out.loss[i] = out.weight[i] = 0;
    for (let j = 0; j < w; j++) if (M[at + j] === 2) out.pair[at + j] /= sumN;
    return;
  }
  const factor = kernel.scale === "tau_over_base" && kernel.base ? kernel.temperature / kernel.base : 1;
  const own = kernel.denominator === "own_positive";
  let loss = 0,
    pull = 0; // pull: Σ_p of the negatives' share of each positive's own denominator
  if (own) {
    for (let j = 0; j < w; j++) {
      if (M[at + j] !== 1) continue;
      const l = S[at + j] * scale,
        a = logAddExp(l, lseN);
      loss += (a - l) / nP;
      pull += Math.exp(lseN - a) / nP;
      out.grad[at + j] = (factor * scale * (Math.exp(l - a) - 1)) / nP;
    }
  } else if (kernel.aggregate === "out") loss = lseA - meanP;
  else loss = lseA - lseP + (kernel.aggregate === "in" ? Math.log(nP) : 0);
  const shareN = Math.exp(topN - lseA);
  for (let j = 0; j < w; j++) {
    const m = M[at + j];
    if (m === 2) {
      const e = out.pair[at + j];
      out.pair[at + j] = e * shareN;
      out.grad[at + j] = factor * scale * (own ? (e / sumN) * pull : e * shareN);
    } else if (m === 1) {
      const l = S[at + j] * scale,
        p = Math.exp(l - lseA);
      out.pair[at + j] = p;
      if (!own) {
        const target = kernel.aggregate === "out" ? 1 / nP : Math.exp(l - lseP);
        out.grad[at + j] = factor * scale * (p - target);
      }
    }
  }
  out.loss[i] = factor * loss;
  out.weight[i] = 1;
}
