import assert from "node:assert/strict";
import { test } from "node:test";

import { isRightToLeft, isolated } from "../../contrastive_lab/components/shared/texts.js";

test("a text from right to left keeps its direction inside a sentence", () => {
  assert.equal(isolated("plain. 字"), "plain. 字");
  for (const text of ["שלום.", "a مرحبا"]) assert.equal(isolated(text), `\u2068${text}\u2069`);
});

test("the first letter says where a text begins", () => {
  assert.ok(isRightToLeft("1. שלום abc"));
  assert.ok(isRightToLeft("«مرحبا»"));
  for (const text of ["abc שלום", "字", "12", ""]) assert.ok(!isRightToLeft(text));
});
