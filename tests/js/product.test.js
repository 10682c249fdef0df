// The product of two matrices, by WebAssembly and without it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const wabt = await import("wabt").catch(() => null), // npm install brings it
  FOLDER = new URL("../../contrastive_lab/components/playground/", import.meta.url),
  /** @type {[number, number, number][]} */
  SIZES = [
    [1, 1, 1],
    [5, 3, 9],
    [12, 7, 16],
    [61, 300, 70], // more than the first page of the memory
  ];

/** What addProduct makes of small whole numbers, which floats add exactly, and what is right. */
function both({ addProduct, matrix, turned }, [n, inner, width], isTurnedA, isTurnedB) {
  const values = (count, salt) => Float32Array.from({ length: count }, (_, k) => ((k * 7 + salt) % 11) - 5),
    [a, b, c] = [values(n * inner, 1), values(inner * width, 2), values(n * width, 3)],
    right = Array.from(c, (value, at) => {
      const [i, q] = [Math.floor(at / width), at % width];
      for (let k = 0; k < inner; k++)
        value += a[isTurnedA ? k * n + i : i * inner + k] * b[isTurnedB ? q * inner + k : k * width + q];
      return value;
    });
  addProduct(
    isTurnedA ? turned(matrix(a, 0, n)) : matrix(a, 0, inner),
    isTurnedB ? turned(matrix(b, 0, inner)) : matrix(b, 0, width),
    matrix(c, 0, width),
    [n, inner, width],
  );
  return [Array.from(c), right];
}

for (const is of ["by WebAssembly", "without it"])
  test(`a product ${is}`, async () => {
    const own = WebAssembly.Module;
    if (is === "without it") WebAssembly.Module = null;
    const product = await import(`${FOLDER}product.js?${is}`);
    WebAssembly.Module = own;
    for (const sizes of SIZES)
      for (let way = 0; way < 4; way++) {
        const [found, right] = both(product, sizes, way & 1, way & 2);
        assert.deepEqual(found, right, `${sizes}, ${way}`);
      }
  });

test("the code is product.wat, assembled", { skip: !wabt && !process.env.CI }, async () => {
  const source = readFileSync(new URL("product.wat", FOLDER), "utf8"),
    bytes = (await wabt.default()).parseWat("product.wat", source, { simd: true }).toBinary({}).buffer,
    [, code] = readFileSync(new URL("product.js", FOLDER), "utf8").match(/CODE = `([^`]+)`/);
  assert.equal(code.replace(/\s/g, ""), Buffer.from(bytes).toString("base64"));
});
