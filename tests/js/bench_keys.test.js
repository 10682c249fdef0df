import assert from "node:assert/strict";
import test from "node:test";

import { isTyped, keysOf } from "../../contrastive_lab/components/bench/keys.js";

test("up to ten classes have a key each, of more only the likeliest; classes that are digits have their own", () => {
  const names = ["cat", "dog", "deer", "bird"],
    many = [..."abcdefghijk"];
  assert.deepEqual(
    keysOf(["dog"], names).map(([key, name]) => key + name),
    ["1cat", "2dog", "3deer", "4bird"],
  );
  assert.equal(keysOf([], many.slice(0, 10)).at(-1).join(""), "0j");
  assert.deepEqual(keysOf(["k", "a"], many), [
    ["1", "k"],
    ["2", "a"],
  ]);
  assert.deepEqual(keysOf(["8"], [..."098"]).flat(), [..."009988"]);
});

test("a key belongs to a field that takes text, a picker or a list of classes, not to a slider or a switch", () => {
  const input = (type) => ({ matches: (asked) => asked === "input", type });
  const types = ["text", "number", "search", "range", "checkbox"];
  assert.deepEqual(
    types.map((type) => isTyped(input(type))),
    [true, true, true, false, false],
  );
  assert.equal(isTyped({ matches: (asked) => asked.startsWith("select,") }), true);
  assert.equal(isTyped({}), false); // the document itself
});
