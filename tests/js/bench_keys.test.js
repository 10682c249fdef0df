import assert from "node:assert/strict";
import test from "node:test";

import { classOf, isTyped, keysOf } from "../../contrastive_lab/components/bench/keys.js";

test("the three likeliest classes have the keys 1 to 3; classes that are digits have their own", () => {
  const names = ["cat", "dog", "deer", "bird"];
  assert.deepEqual(keysOf(["dog", "deer", "bird"], names), ["1", "2", "3"]);
  assert.deepEqual(
    ["1", "3", "4", "0", "k"].map((key) => classOf(key, ["dog", "deer", "bird"], names)),
    ["dog", "bird", undefined, undefined, undefined],
  );
  const digits = [..."0123456789"];
  assert.deepEqual(keysOf(["8", "3"], digits), ["8", "3"]);
  assert.deepEqual(
    ["8", "0"].map((key) => classOf(key, ["8", "3"], digits)),
    ["8", "0"],
  );
});

test("a key belongs to a field that takes text, not to a closed picker, a slider or a switch", () => {
  const picker = (open) => ({
    matches: (asked) => asked === "input" || asked === "[role=combobox]",
    getAttribute: () => String(open),
  });
  assert.equal(isTyped(picker(false)), false);
  assert.equal(isTyped(picker(true)), true);
  const input = (type) => ({ matches: (asked) => asked === "input", type });
  const types = ["text", "number", "search", "range", "checkbox"];
  assert.deepEqual(
    types.map((type) => isTyped(input(type))),
    [true, true, true, false, false],
  );
  assert.equal(isTyped({ matches: (asked) => asked.startsWith("textarea") }), true);
  assert.equal(isTyped({}), false); // the document itself
});
