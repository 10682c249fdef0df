// Scores of points on a circle, the gradient of the loss on their angles, and what is told of them.

import { evaluate } from "../shared/kernels.js";

/**
 * Scores of points at these angles as the loss compares them.
 *
 * @param {Float64Array} angles
 * @param {string} score
 * @param {Scores} S
 */
export function circleScores(angles, score, S) {
  const n = angles.length;
  for (let i = 0; i < n; i++)
    for (let j = 0; j < n; j++) {
      const d = angles[i] - angles[j];
      S[i * n + j] =
        score === "dot" ? Math.cos(d) : score === "distance" ? 2 * Math.abs(Math.sin(d / 2)) : 4 * Math.sin(d / 2) ** 2;
    }
  return S;
}

/**
 * ∂value/∂angle (n): through the scores of every anchor, and of every anchor it is compared with.
 *
 * @param {Float64Array} angles
 * @param {string} score
 * @param {KernelOutput} out
 * @param {boolean} [pulled] only through pairs that are pulled together
 */
export function circleGradient(angles, score, out, pulled = false) {
  const n = angles.length,
    force = new Float64Array(n);
  let total = 0;
  for (let i = 0; i < n; i++) total += out.weight[i];
  if (!(total > 0)) return force;
  for (let i = 0; i < n; i++) {
    const share = out.weight[i] / total;
    if (!share) continue;
    for (let j = 0; j < n; j++) {
      const g = out.grad[i * n + j];
      if (!g || (pulled && g < 0 !== (score === "dot"))) continue;
      const d = angles[i] - angles[j],
        half = Math.sin(d / 2);
      const slope =
        score === "dot"
          ? -Math.sin(d)
          : score === "distance"
            ? half === 0
              ? 0
              : Math.sign(half) * Math.cos(d / 2)
            : 2 * Math.sin(d);
      force[i] += share * g * slope;
      force[j] -= share * g * slope;
    }
  }
  return force;
}

/**
 * The angle up to which a margin reaches from point i; at most π, and 0 for a loss without one.
 *
 * @param {CircleState} ring
 * @param {number} i
 */
export function marginAngle(ring, i) {
  const { kernel, n, M, angles } = ring;
  if (kernel.family !== "hinge") return 0;
  let reach = kernel.squared ? Math.sqrt(kernel.margin) : kernel.margin; // as a distance
  if (kernel.form === "triplet") {
    let positive = -1; // squared distance to the farthest
    for (let j = 0; j < n; j++)
      if (M[i * n + j] === 1) positive = Math.max(positive, 4 * Math.sin((angles[i] - angles[j]) / 2) ** 2);
    if (positive < 0) return 0;
    reach = Math.sqrt(positive + kernel.margin);
  }
  return reach >= 2 ? Math.PI : 2 * Math.asin(reach / 2);
}

/** @param {CircleState} ring */
export function compute(ring) {
  circleScores(ring.angles, ring.meta.score, ring.S);
  const known = ring.out?.n === ring.n ? ring.out : null;
  known?.sorted.fill(undefined); // the triplet kernel keeps sorted rows of a matrix that doesn't change; here it does
  ring.out = evaluate(ring.S, ring.M, ring.n, ring.n, ring.kernel, known);
  ring.force = circleGradient(ring.angles, ring.meta.score, ring.out);
  ring.pull = circleGradient(ring.angles, ring.meta.score, ring.out, true);
  Object.assign(ring, qualities(ring));
}

/**
 * The distance between the means of both towers, 0 to 2; NaN for one tower.
 *
 * @param {{ angles: Float64Array, tower: number[] }} ring
 */
export function gapOf({ angles, tower }) {
  const sums = [0, 1].map((t) => {
    const of = [...angles].filter((_, i) => tower[i] === t);
    return [Math.cos, Math.sin].map((f) => of.reduce((sum, a) => sum + f(a), 0) / of.length);
  });
  return Math.hypot(sums[0][0] - sums[1][0], sums[0][1] - sums[1][1]);
}

/** Alignment: mean squared distance of positive pairs. Uniformity: log mean exp(−2 d²) of all. */
function qualities(ring) {
  const { angles, n, M } = ring;
  let near = 0,
    pairs = 0,
    spread = 0;
  for (let i = 0; i < n; i++)
    for (let j = 0; j < i; j++) {
      const d = 4 * Math.sin((angles[i] - angles[j]) / 2) ** 2;
      spread += Math.exp(-2 * d);
      if (M[i * n + j] === 1) {
        near += d;
        pairs++;
      }
    }
  return {
    gap: gapOf(ring),
    alignment: pairs ? near / pairs : NaN,
    uniformity: Math.log(spread / ((n * (n - 1)) / 2)),
  };
}
