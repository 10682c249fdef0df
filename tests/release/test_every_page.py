"""Each page is opened once in each language, and everything that all pages owe is checked in this visit.

For everyone: axe-core finds nothing serious (`npm install --no-save --no-package-lock` brings it). In words: no label
holds a backslash, no placeholder is cut off, no Chinese page has an English sentence. That every choice counts is held
by app/test_every_choice.py.
"""

import os
import re
from typing import Any

import pytest
from page_checks import AXE_FINDINGS, CUT, ESCAPED, check_accessibility, check_chinese, check_labels, settled
from visits import Visit

from contrastive_core.base.storage import ROOT

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
ENGLISH = {  # address: its checks, and what is there once it has come
    "": ("axe labels", "Find wrong labels"),
    "explore?run=two-0.2-s0": ("axe labels", "kNN accuracy"),
    "loss_lab?run=two-0.2-s0": ("axe labels", "Loss of the batch"),
    "loss_lab?run=two-0.2-s0&on=circle": ("axe labels", "What you see"),
    "loss_lab?lesson=6": ("axe", "Effect of labels"),
    "train?watch=two-0.2-s0&adviser=yes": ("labels", "Train"),
    "train?data=folder": ("axe labels", "Start"),
    "compare?runs=simclr-digits,two-0.2-s0,sup_con-digits": ("axe labels", "Disagreements"),
    "samples?run=simclr-digits": ("axe labels", "Likely mislabeled"),
    "runs": ("axe labels", "Click a run"),
    "runs?view=sweeps&sweep=a new one…": ("labels", "Runs"),
    "runs?view=import": ("labels", "Runs"),
    "runs?view=import&source=model": ("labels", "Runs"),
    "methods": ("axe", "SimCLR"),
    "methods?beside=moco_v2": ("labels", "Methods"),
}
CHINESE = {  # address and what is there once it has come
    "": "假负样本",
    "explore?run=two-0.2-s0": "kNN 准确率",
    "loss_lab?run=simclr-digits": "负样本",
    "loss_lab?on=circle": "图中所见",
    "loss_lab?lesson=6": "标签",
    "train": "开始",
    "train?data=folder": "开始",
    "compare?runs=simclr-digits,sup_con-digits": "总览",
    "samples?run=simclr-digits": "可能标错",
    "runs": "点击查看详情",
    "runs?view=sweeps&sweep=a new one…": "保存参数扫描",
    "runs?view=import&source=model": "导入",
    "methods": "论文",
    "methods?beside=moco_v1,sup_con": "相同之处",
}
WITH_PLACEHOLDERS = ("explore?run=two-0.2-s0", "train?data=folder", "runs?view=import&source=model")


@pytest.fixture(scope="module")
def axe() -> str:
    """The source of axe-core; empty where it is not installed."""
    if not AXE.exists() and os.environ.get("CI"):
        pytest.fail("axe-core is missing")
    return AXE.read_text("utf-8") if AXE.exists() else ""


@pytest.mark.parametrize("address", ENGLISH)
def test_a_page_is_for_everyone(filled_app: str, page: Any, axe: str, address: str) -> None:
    checks, ready = ENGLISH[address]
    page.emulate_media(reduced_motion="reduce")  # Home's star rests
    visit = Visit(page)
    visit.begin(f"{filled_app}/{address}")
    page.get_by_text(ready).first.wait_for(state="attached")
    if "axe" in checks and axe:
        check_accessibility(page, axe)
    if checks != "axe":
        visit.finish()
    if "labels" in checks:
        check_labels(visit)
    if "axe" in checks and not axe:
        pytest.skip("axe-core is not installed; all other checks passed")


@pytest.mark.parametrize("address", CHINESE)
def test_a_chinese_page_has_no_english_sentence(filled_app: str, page: Any, address: str) -> None:
    visit = Visit(page)
    visit.begin(f"{filled_app}/{address}{'&' if '?' in address else '?'}lang=zh")
    page.get_by_text(re.compile(CHINESE[address])).filter(visible=True).first.wait_for()
    settled(page)
    check_chinese(page)
    if address in WITH_PLACEHOLDERS:
        visit.finish()
        check_labels(visit)


def test_a_label_that_is_cut_off_or_escaped_is_found(page: Any) -> None:
    page.set_content(
        '<input placeholder="fits"><input style="width: 20px" placeholder="cut off">'
        '<button aria-label="simclr\\\\-shapes">x</button>'
    )
    assert page.evaluate(CUT) == ["null: cut off"]
    assert page.evaluate(ESCAPED) == ["simclr\\\\-shapes"]


def test_faint_text_is_found(page: Any, axe: str) -> None:
    if not axe:
        pytest.skip("axe-core is not installed")
    page.set_content("<html lang=en><title>t</title><main><p style='color: #aaa'>faint</p></main>")
    page.evaluate(axe)
    assert any(f.startswith("color-contrast") for f in page.evaluate(AXE_FINDINGS))
