// Random numbers from a seed, the same in every browser and in the test's Python: mulberry32, and normal ones from it.

/** @param {number} seed */
export function generator(seed) {
  let state = (Math.imul(seed + 1, 0x9e3779b9) ^ 0x5bf03635) >>> 0;
  /** From 0 to below 1. */
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  /** Box and Muller. */
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return { uniform, normal };
}
