// Texts of the browser parts in another language.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { setWords, speaks, tr } from "../../contrastive_lab/components/shared/words.js";

beforeEach(() =>
  setWords({
    "{0} of {1} negatives": "{1} 个负样本中的 {0} 个",
    "Loss of the batch": "批次损失",
    "Anchor {0}: loss": "锚点 {0}：损失",
    "the hardest negative, {0}, gets {1} of the push": "最困难的负样本 {0} 得到 {1} 的推力",
    "{0} negatives matter": "{0} 个负样本起作用",
    Margin: "间隔",
    "nearly all": "几乎全部",
    "Over {0}": "随 {0} 变化",
  }),
);
afterEach(() => setWords(null));

const SAID = {
  "Loss of the batch": "批次损失",
  "loss of the batch": "批次损失",
  "3 of 12 negatives": "12 个负样本中的 3 个",
  "Anchor #0a: loss": "锚点 #0a：损失",
  "The hardest negative, #3b, gets 41 % of the push; 7 negatives matter.":
    "最困难的负样本 #3b 得到 41 % 的推力；7 个负样本起作用。",
  "Loss of the batch. 7 negatives matter.": "批次损失。7 个负样本起作用。",
  "The hardest negative, #3b, gets nearly all of the push.": "最困难的负样本 #3b 得到几乎全部的推力。", // no space at a seam
  "(loss of the batch)": "(批次损失)",
  "Anchor Margin: loss": "锚点 Margin：损失", // a class of that name
  0.25: "0.25",
  "a name": "a name",
};

for (const [text, said] of Object.entries(SAID)) test(text, () => assert.equal(tr(text), said));

test("in English nothing changes", () => {
  setWords(null);
  assert.equal(speaks(), false);
  assert.equal(tr("Loss of the batch"), "Loss of the batch");
});

test("entries of several parts come together", () => {
  setWords({ Formula: "公式" });
  assert.equal(tr("Formula"), "公式");
  assert.equal(tr("Margin"), "间隔");
});
