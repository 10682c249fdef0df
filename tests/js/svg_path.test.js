// Paths of SVG as operators of a PDF page.

import assert from "node:assert/strict";
import { test } from "node:test";

import { pathOperators } from "../../contrastive_lab/components/shared/svg_path.js";

test("lines, absolute and relative", () => {
  assert.equal(pathOperators("M1,2L3 4h2v-1l-1-1z"), "1 2 m\n3 4 l\n5 4 l\n5 3 l\n4 2 l\nh");
  assert.equal(pathOperators("m1 1 2 2M0 0"), "1 1 m\n3 3 l\n0 0 m");
});

test("a quadratic curve and its mirrored next become cubic ones", () => {
  assert.equal(pathOperators("M0,0Q3,3 6,0T12,0"), "0 0 m\n2 2 4 2 6 0 c\n8 -2 10 -2 12 0 c");
  assert.equal(pathOperators("M0 0C0 1 2 1 2 0S4-1 4 0"), "0 0 m\n0 1 2 1 2 0 c\n2 -1 4 -1 4 0 c");
});

test("the circle of a marker stays within a thousandth of its radius", () => {
  const numbers = pathOperators("M3,0A3,3 0 1,1 0,-3A3,3 0 0,1 3,0Z").split("\n");
  assert.equal(numbers.length, 6); // three quarters, one quarter, start and end
  let here = [3, 0];
  for (const line of numbers.slice(1, -1)) {
    const [a, b, c, d, e, f] = line.split(" ").map(Number);
    for (let t = 0; t <= 1; t += 0.1) {
      const at = (p0, p1, p2, p3) =>
        (1 - t) ** 3 * p0 + 3 * (1 - t) ** 2 * t * p1 + 3 * (1 - t) * t * t * p2 + t ** 3 * p3;
      assert.ok(Math.abs(Math.hypot(at(here[0], a, c, e), at(here[1], b, d, f)) - 3) < 0.003);
    }
    here = [e, f];
  }
});
