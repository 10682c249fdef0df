// Where the points are: at first, as an address holds them, and after a step.

import { compute } from "./forces.js";
import { remembered } from "../shared/course.js";
import { fromSlider } from "../shared/knob.js";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
  TURN = 1 << 18; // of an angle as three letters

const STEP = /** @type {any} */ ({ low: 0.002, high: 1, log: true }); // of the gradient descent

export const MOST_GROUPS = 20;

const TRAIL = 20; // steps

/**
 * Angles as letters that an address can hold, and back; null for what are none.
 *
 * @param {Float64Array} angles
 */
export function written(angles) {
  return Array.from(angles, (a) => {
    const q = ((Math.round((a / (2 * Math.PI)) * TURN) % TURN) + TURN) % TURN;
    return LETTERS[q >> 12] + LETTERS[(q >> 6) & 63] + LETTERS[q & 63];
  }).join("");
}

/**
 * @param {string} text
 * @param {number} n
 */
export function readAngles(text, n) {
  const values = Array.from(text, (letter) => LETTERS.indexOf(letter));
  if (values.length !== 3 * n || values.includes(-1)) return null;
  return Float64Array.from(
    { length: n },
    (_, k) => ((values[3 * k] * 4096 + values[3 * k + 1] * 64 + values[3 * k + 2]) / TURN) * 2 * Math.PI,
  );
}

/**
 * Points at angles that a small generator draws from the seed, and their groups.
 *
 * @param {CircleState} ring
 */
export function restart(ring) {
  const across = ring.towers.checked,
    asked = Math.min(400, Math.max(2, Number(ring.points.value) || 24)),
    n = across ? 2 * Math.floor(asked / 2) : asked,
    own = across ? n / 2 : n, // of one tower
    g = Math.min(own, Math.max(1, Number(ring.groups.value) || 2));
  let state = 12345 + 977 * ring.scatter;
  const random = () => (state = (state * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff;
  ring.angles = Float64Array.from({ length: n }, () => 2 * Math.PI * random());
  ring.tower = Array.from({ length: n }, (_, i) => Number(i >= own));
  ring.group = Array.from({ length: n }, (_, i) => (i % own) % g);
  ring.S = new Float64Array(n * n); // at τ = 0.01 float32 scores would show in the forces
  ring.M = new Uint8Array(n * n);
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) ring.M[i * n + j] = relation(ring, i, j);
  Object.assign(ring, { n, count: g, step: 0, history: [], trail: [], out: null, most: 0, moved: false });
}

/**
 * Of two towers only rows of the other one are compared.
 *
 * @param {CircleState} ring
 * @param {number} i
 * @param {number} j
 */
function relation({ tower, group, towers }, i, j) {
  if (i === j) return 3;
  if (towers.checked && tower[i] === tower[j]) return 0;
  return group[i] === group[j] ? 1 : 2;
}

/**
 * Points of two towers, or of one: each pair is a group of its own at first.
 *
 * @param {CircleState} ring
 */
export function turnTowers(ring) {
  const points = Number(ring.points.value) || 24;
  ring.groups.value = String(ring.towers.checked ? Math.min(MOST_GROUPS, Math.floor(points / 2)) : 2);
  restart(ring);
}

/**
 * The step of the gradient descent, from the slider's place.
 *
 * @param {CircleState} ring
 */
export const stepSize = (ring) => fromSlider(STEP, Number(ring.speed.value));

/**
 * Step, loss, alignment and uniformity from the first step to the state that is shown.
 *
 * @param {CircleState} ring
 */
export function course({ history, step, out, alignment, uniformity }) {
  return history.length && out ? [...history, [step, out.value, alignment, uniformity]] : [];
}

/**
 * One step of gradient descent on the angles; no point turns by more than a tenth of a radian.
 *
 * @param {CircleState} ring
 */
export function advance(ring) {
  compute(ring);
  ring.moved = true;
  const rate = ring.n * stepSize(ring);
  ring.trail = [...ring.trail, ring.angles.slice()].slice(-TRAIL);
  for (let i = 0; i < ring.n; i++)
    if (i !== ring.held) ring.angles[i] -= Math.max(-0.1, Math.min(0.1, rate * ring.force[i]));
  ring.history = remembered(ring.history, [ring.step, ring.out.value, ring.alignment, ring.uniformity]);
  ring.step++;
}

const FLOOR = 1e-3; // of an axis: the least range, as a share of the values, at least of 1

/**
 * The ends of an axis, far enough apart that rounding noise is no curve.
 *
 * @param {number[]} values
 */
export function axisOf(values) {
  const low = Math.min(...values),
    high = Math.max(...values),
    least = FLOOR * Math.max(1, Math.abs(low), Math.abs(high)),
    more = Math.max(0, least - (high - low)) / 2;
  return [low - more, high + more];
}

const NEAR = 0.02; // how exactly, as a share of the distance between two groups

/**
 * Whether groups of two are each in one place and evenly spaced: by symmetry nothing moves them, whatever the knob.
 *
 * @param {{ n: number, count: number, angles: Float64Array, group: number[] }} ring
 */
export function isEven({ n, count, angles, group }) {
  if (n !== 2 * count || count < 2) return false;
  const step = (2 * Math.PI) / count,
    turned = (a) => ((a % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI),
    away = (a, b) => Math.abs(turned(a - b + Math.PI) - Math.PI),
    first = Array.from({ length: count }, (_group, k) => angles[group.indexOf(k)]);
  if (group.some((k, i) => away(angles[i], first[k]) > NEAR * step)) return false;
  const places = first.map(turned).sort((a, b) => a - b);
  return places.every((a, k) => Math.abs(away(a, places[(k + 1) % count]) - step) < NEAR * step);
}
