// The product of two matrices: in WebAssembly, on four floats at a time, where a page allows it.

// product.wat, assembled; a test does it again.
const CODE = `
AGFzbQEAAAABCwFgB39/f39/f38AAwIBAAUDAQABBxQCBm1lbW9yeQIAB3Byb2R1Y3QAAAruAwHrAwILfwt7IAJBAnQhCgNAQQAhCQNAIAchCyAL
IANqIQwgDCADaiENIA0gA2ohDiAFIAlqIQ8gASEQIAYgCWohESAR/QAEACEVIBH9AAQQIRYgESAKaiERIBH9AAQAIRcgEf0ABBAhGCARIApqIREg
Ef0ABAAhGSAR/QAEECEaIBEgCmohESAR/QAEACEbIBH9AAQQIRwDQCAP/QAEACESIA/9AAQQIRMgC/0JAgAhFCAVIBQgEv3mAf3kASEVIBYgFCAT
/eYB/eQBIRYgDP0JAgAhFCAXIBQgEv3mAf3kASEXIBggFCAT/eYB/eQBIRggDf0JAgAhFCAZIBQgEv3mAf3kASEZIBogFCAT/eYB/eQBIRogDv0J
AgAhFCAbIBQgEv3mAf3kASEbIBwgFCAT/eYB/eQBIRwgDyAKaiEPIAsgBGohCyAMIARqIQwgDSAEaiENIA4gBGohDiAQQQFrIhANAAsgESAb/QsE
ACARIBz9CwQQIBEgCmshESARIBn9CwQAIBEgGv0LBBAgESAKayERIBEgF/0LBAAgESAY/QsEECARIAprIREgESAV/QsEACARIBb9CwQQIAlBIGoh
CSAJIApJDQALIAcgA0ECdGohByAGIApBAnRqIQYgCEEEaiEIIAggAEkNAAsL`;

/** A matrix in an array: the cell (i, k) stands at `at` + i·down + k·across; one of the two is 1. */
export const matrix = (of, at, down, across = 1) => ({ of, at, down, across });
export const turned = ({ of, at, down, across }) => matrix(of, at, across, down);

const built = assembled();
let cells = new Float32Array(built?.memory.buffer ?? 0);

/** What product.wat exports; null where a page's policy is against it, or the browser is of before 2023. */
function assembled() {
  try {
    const bytes = Uint8Array.from(atob(CODE), (c) => c.charCodeAt(0));
    return /** @type {any} */ (new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports);
  } catch {
    return null;
  }
}

/** Adds A (n·inner) times B (inner·width) to C, which is not turned. */
export function addProduct(A, B, C, [n, inner, width]) {
  const tall = 4 * Math.ceil(n / 4), // as product.wat wants it: with rows and columns of 0
    wide = 8 * Math.ceil(width / 8),
    b = tall * inner,
    c = b + inner * wide;
  makeRoom(c + tall * wide);
  if (n % 4 || width % 8) cells.fill(0, 0, c);
  const [down, across] = A.across > 1 ? [1, tall] : [inner, 1];
  if (down === 1) copy(turned(A), inner, n, 0, tall);
  else copy(A, n, inner, 0, inner);
  copy(B, inner, width, b, wide);
  copy(C, n, width, c, wide);
  if (built) built.product(tall, inner, wide, 4 * down, 4 * across, 4 * b, 4 * c);
  else plainProduct(n, inner, wide, down, across, b, c);
  for (let i = 0; i < n; i++) C.of.set(cells.subarray(c + i * wide, c + i * wide + width), C.at + i * C.down);
}

function makeRoom(count) {
  if (count <= cells.length) return;
  built?.memory.grow(Math.ceil((count - cells.length) / 16384)); // pages
  cells = new Float32Array(built?.memory.buffer ?? count);
}

function copy({ of, at, down, across }, rows, columns, to, wide) {
  const into = cells; // a constant is read faster
  for (let i = 0; i < rows; i++, at += down, to += wide)
    if (across === 1) into.set(of.subarray(at, at + columns), to);
    else for (let k = 0; k < columns; k++) into[to + k] = of[at + k * across];
}

function plainProduct(n, inner, wide, down, across, b, c) {
  for (let i = 0; i < n; i++)
    for (let k = 0; k < inner; k++) {
      const x = cells[i * down + k * across];
      if (x !== 0) for (let q = 0; q < wide; q++) cells[c + i * wide + q] += x * cells[b + k * wide + q];
    }
}
