// The parts of patches: what is shown on each sample while a patch is pointed at.

/**
 * @typedef {{ side: number, place: number }} Spot
 * @typedef {{ patches: Float32Array, counts: [number, number] }} Parts
 */

/**
 * The part of each patch of a sample with the patch of the other one that is pointed at, else with all of them.
 *
 * @param {Parts} parts
 * @param {number} side 0 or 1
 * @param {Spot | null} spot
 */
export function partsOf({ patches, counts: [p, q] }, side, spot) {
  const found = new Float64Array(side ? q : p),
    lit = spot && spot.side !== side ? spot.place : -1;
  patches.forEach((part, k) => {
    const pair = [Math.floor(k / q), k % q];
    if (lit < 0 || pair[1 - side] === lit) found[pair[side]] += part;
  });
  return found;
}

/** @param {Float64Array} found */
export const largestAt = (found) => found.reduce((k, part, i) => (Math.abs(part) > Math.abs(found[k]) ? i : k), 0);

/**
 * The patch under a point, in shares of the picture's sides.
 *
 * @param {number} x
 * @param {number} y
 * @param {number[]} shape rows and columns
 */
export function placeAt(x, y, [rows, columns]) {
  const within = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
  return within(y, rows) * columns + within(x, columns);
}
