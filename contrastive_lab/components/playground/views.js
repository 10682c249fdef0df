// Views of a small gray image: it is moved, turned and scaled, its contrast changes, noise comes, a square is erased.
// Every view draws the same count of random numbers, so that twins with other strengths see the same draws.

const TURN = 0.5, // radians, shift in shares of the side, log of the zoom: each at full strength
  SHIFT = 0.25,
  ZOOM = 0.35,
  CONTRAST = 0.8,
  NOISE = 0.35,
  ERASED = 0.5; // largest side of the square

/**
 * Writes one view (side²) of an image (side²).
 *
 * @param {ArrayLike<number>} image
 * @param {number} side
 * @param {{ move: number, contrast: number, noise: number, erase: number }} strengths from 0 to 1
 * @param {{ uniform: () => number, normal: () => number }} random
 * @param {Float32Array} into
 * @param {number} at
 */
export function drawView(image, side, strengths, random, into, at) {
  const between = () => 2 * random.uniform() - 1,
    turn = strengths.move * TURN * between(),
    zoom = Math.exp(strengths.move * ZOOM * between()),
    dx = strengths.move * SHIFT * side * between(),
    dy = strengths.move * SHIFT * side * between(),
    gain = Math.exp(strengths.contrast * CONTRAST * between()),
    hole = strengths.erase * ERASED * side * random.uniform(),
    hx = side * random.uniform(),
    hy = side * random.uniform(),
    c = Math.cos(turn) / zoom,
    s = Math.sin(turn) / zoom,
    middle = (side - 1) / 2;
  for (let y = 0; y < side; y++)
    for (let x = 0; x < side; x++) {
      const u = x - middle - dx,
        v = y - middle - dy,
        seen = pixel(image, side, middle + c * u + s * v, middle - s * u + c * v),
        isErased = Math.abs(x + 0.5 - hx) < hole / 2 && Math.abs(y + 0.5 - hy) < hole / 2,
        noise = strengths.noise * NOISE * random.normal();
      into[at + y * side + x] = (isErased ? 0 : Math.min(1, gain * seen)) + noise;
    }
}

/** Between four pixels; 0 outside. */
function pixel(image, side, x, y) {
  const x0 = Math.floor(x),
    y0 = Math.floor(y);
  let sum = 0;
  for (let q = y0; q < y0 + 2; q++)
    for (let p = x0; p < x0 + 2; p++)
      if (p >= 0 && q >= 0 && p < side && q < side)
        sum += (1 - Math.abs(x - p)) * (1 - Math.abs(y - q)) * image[q * side + p];
  return sum;
}
