"""Methods in a real browser: the family tree leads to each, sets some side by side, and filters without the server."""

import re
from typing import Any

from patience import SLOW


def node(page: Any, name: str) -> Any:
    return page.locator(f'.family a[data-name="{name}"]')


def test_the_family_tree_is_the_navigation(filled_app: str, page: Any) -> None:
    page.goto(f"{filled_app}/methods")
    inspector = page.locator(".st-key-inspector")
    inspector.get_by_role("heading", name="SimCLR (2020)").wait_for(timeout=SLOW)
    node(page, "byol").click(timeout=SLOW)
    inspector.get_by_role("heading", name="BYOL (2020)").wait_for(timeout=SLOW)
    page.wait_for_url(re.compile("method=byol"), timeout=SLOW)
    node(page, "clip").focus()
    page.keyboard.press("Enter")
    inspector.get_by_role("heading", name="CLIP (2021)").wait_for(timeout=SLOW)
    page.wait_for_function("() => document.querySelectorAll('.method .flow').length === 1")
    node(page, "cpc").click(modifiers=["Shift"])
    inspector.get_by_role("heading", name="CLIP · CPC").wait_for(timeout=SLOW)
    page.wait_for_function("() => document.querySelectorAll('.method .flow').length === 2")
    node(page, "cpc").click(modifiers=["Shift"])  # once more: it leaves
    inspector.get_by_role("heading", name="CLIP (2021)").wait_for(timeout=SLOW)


def test_filters_dim_the_others_at_once(filled_app: str, page: Any) -> None:
    page.goto(f"{filled_app}/methods?has=predictor")  # a link of before
    node(page, "simclr").wait_for(timeout=SLOW)
    dim = page.locator(".family a.dim")
    lit = page.locator(".family a:not(.dim)")
    assert set(lit.all_inner_texts()) == {"BYOL", "SimSiam", "MoCo v3", "NNCLR"}
    page.get_by_role("button", name="no negatives").click()
    assert set(lit.all_inner_texts()) == {"BYOL", "SimSiam"}
    page.get_by_role("button", name="no negatives").click()
    page.get_by_role("button", name="predictor").click()
    assert dim.count() == 0
