// What stands in a figure's file is XML, whatever the labels are.

import assert from "node:assert/strict";
import { test } from "node:test";

import { withoutControls } from "../../contrastive_lab/components/shared/figure_file.js";

test("characters that XML forbids are left out", () => {
  const codes = [...Array(32).keys(), 0xfffe, 0xffff, 0xd800, 0xdfff].filter((code) => ![9, 10, 13].includes(code));
  for (const code of codes) assert.equal(withoutControls(`a${String.fromCharCode(code)}b`), "ab");
});

test("all other text stays", () => {
  const text = "<text>τ = 0.5\t中文 😀 &amp; &#9; &#xA; &#13; &#32; é</text>";
  assert.equal(withoutControls(text), text);
});
