// Where the images of a star stand, and who gets how much of the push.

const GOLDEN = 2.399963, // radians: neighbors in rank stand far apart
  FIRST = 2.8, // radians: where the positive stands, to the left
  TURNS = 200, // of moving apart
  STEP = 0.02; // radians

/**
 * Shares of the push on an anchor's negatives: the softmax over them, which sums to 1.
 *
 * @param {ArrayLike<number>} scores of the anchor (n)
 * @param {number[]} negatives
 * @param {number} temperature
 * @returns {number[]}
 */
export function pushShares(scores, negatives, temperature) {
  const top = Math.max(...negatives.map((j) => scores[j])),
    powers = negatives.map((j) => Math.exp((scores[j] - top) / temperature)),
    sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((v) => v / sum);
}

/**
 * How many negatives matter: the exponential of the entropy of their shares.
 *
 * @param {number[]} shares
 */
export function effective(shares) {
  return Math.exp(-shares.reduce((sum, p) => (p > 0 ? sum + p * Math.log(p) : sum), 0));
}

/**
 * The images around an anchor: its nearest positives and negatives, and other negatives evenly from near to far.
 *
 * @param {ArrayLike<number>} scores of the anchor (n)
 * @param {ArrayLike<number>} mask of the anchor (n)
 * @param {number} most negatives
 */
export function chosen(scores, mask, most) {
  const ranked = Array.from(scores, (_, j) => j).sort((a, b) => scores[b] - scores[a]),
    half = Math.ceil(most / 2),
    positives = ranked.filter((j) => mask[j] === 1).slice(0, half),
    negatives = ranked.filter((j) => mask[j] === 2),
    near = Math.min(negatives.length, half),
    rest = negatives.length - near,
    others = Math.min(rest, most - near);
  const shown = negatives.slice(0, near);
  for (let k = 0; k < others; k++) shown.push(negatives[near + Math.floor(((k + 0.5) * rest) / others)]);
  return { positives, negatives, shown };
}

/**
 * How far from the anchor a similarity stands, in pixels. At 1 an image is as near as it gets, at `least` as far.
 *
 * @param {number} similarity
 * @param {{ inner: number, outer: number, least: number }} scale
 */
export function radiusOf(similarity, { inner, outer, least }) {
  return inner + ((outer - inner) * (1 - similarity)) / (1 - least);
}

/**
 * The similarity at a distance from the anchor, between that of the farthest image and 1.
 *
 * @param {number} radius in pixels
 * @param {{ inner: number, outer: number, least: number }} scale
 */
export function similarityAt(radius, { inner, outer, least }) {
  return Math.min(1, Math.max(least, 1 - ((radius - inner) * (1 - least)) / (outer - inner)));
}

/**
 * Angles and distances of images: the distance is the dissimilarity alone, the angle is free. Images that overlap are
 * turned apart.
 *
 * @param {number[]} similarity of each image to the anchor, positives first
 * @param {{ inner: number, outer: number, least: number, tile: number }} scale in pixels
 * @returns {{ angle: number, radius: number }[]}
 */
export function places(similarity, scale) {
  const found = similarity.map((s, k) => ({ angle: FIRST + k * GOLDEN, radius: radiusOf(s, scale) }));
  for (let turn = 0, moved = true; moved && turn < TURNS; turn++) {
    moved = false;
    for (let i = 0; i < found.length; i++)
      for (let j = i + 1; j < found.length; j++) {
        if (distance(found[i], found[j]) >= scale.tile) continue;
        const ahead = Math.sin(found[j].angle - found[i].angle) >= 0 ? 1 : -1;
        found[i].angle -= ahead * STEP;
        found[j].angle += ahead * STEP;
        moved = true;
      }
  }
  return found;
}

/** A place from the middle: right and down. */
export const pointOf = ({ radius, angle }) => [radius * Math.cos(angle), radius * Math.sin(angle)];

export function distance(a, b) {
  const [x, y] = pointOf(a),
    [u, v] = pointOf(b);
  return Math.hypot(x - u, y - v);
}

/** The first of some places whose box [width, height] is free of other boxes [middle x, y, width, height]. */
export function freePlace(candidates, [wide, high], boxes) {
  const isApart = ([x, y], [u, v, w, h]) => Math.abs(x - u) >= (wide + w) / 2 || Math.abs(y - v) >= (high + h) / 2;
  return candidates.find((place) => boxes.every((box) => isApart(place, box)));
}

const GLIDE = [0.5, 0.1], // temperatures between which the star glides by itself
  PERIOD = 8000, // milliseconds there and back
  LEAD = 1000; // before it begins

/** The temperature so many milliseconds after the star came. */
export function glide(time) {
  const phase = Math.max(0, time - LEAD) / PERIOD,
    t = (1 - Math.cos(2 * Math.PI * phase)) / 2;
  return GLIDE[0] * Math.pow(GLIDE[1] / GLIDE[0], t);
}

/** From 0 to 1 with a slow start and a slow end. */
export function ease(t) {
  const x = Math.min(1, Math.max(0, t));
  return x < 0.5 ? 4 * x * x * x : 1 - Math.pow(2 - 2 * x, 3) / 2;
}
