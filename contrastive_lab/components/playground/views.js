// Views of a small gray image: it is moved, turned and scaled, its contrast changes, noise comes, a square is erased.
// A row of numbers is an image one pixel high, with its mean in the middle of the range, and is not moved. Every view
// draws the same count of random numbers: twins with other strengths see the same draws.

const TURN = 0.5, // radians, shift in shares of the side, log of the zoom: each at full strength
  SHIFT = 0.25,
  ZOOM = 0.35,
  CONTRAST = 0.8,
  NOISE = 0.35,
  ERASED = 0.5; // largest side of the square

/**
 * Writes one view of an image (height·width) into an array. `strengths` of its changes: from 0 to 1.
 *
 * @param {{ uniform: () => number, normal: () => number }} random
 */
export function drawView(image, [height, width], strengths, random, into, at) {
  const between = () => 2 * random.uniform() - 1,
    [move, blank] = height > 1 ? [strengths.move, 0] : [0, 0.5],
    turn = move * TURN * between(),
    zoom = Math.exp(move * ZOOM * between()),
    dx = move * SHIFT * width * between(),
    dy = move * SHIFT * height * between(),
    gain = Math.exp(strengths.contrast * CONTRAST * between()),
    hole = strengths.erase * ERASED * width * random.uniform(),
    hx = width * random.uniform(),
    hy = height * random.uniform(),
    c = Math.cos(turn) / zoom,
    s = Math.sin(turn) / zoom,
    [mx, my] = [(width - 1) / 2, (height - 1) / 2];
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const u = x - mx - dx,
        v = y - my - dy,
        seen = pixel(image, [height, width], mx + c * u + s * v, my - s * u + c * v),
        isErased = Math.abs(x + 0.5 - hx) < hole / 2 && Math.abs(y + 0.5 - hy) < hole / 2,
        noise = strengths.noise * NOISE * random.normal();
      into[at + y * width + x] = (isErased ? blank : Math.min(1, blank + gain * (seen - blank))) + noise;
    }
}

/** Between four pixels; 0 outside. */
function pixel(image, [height, width], x, y) {
  const x0 = Math.floor(x),
    y0 = Math.floor(y);
  let sum = 0;
  for (let q = y0; q < y0 + 2; q++)
    for (let p = x0; p < x0 + 2; p++)
      if (p >= 0 && q >= 0 && p < width && q < height)
        sum += (1 - Math.abs(x - p)) * (1 - Math.abs(y - q)) * image[q * width + p];
  return sum;
}
