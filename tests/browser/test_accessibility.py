"""Every page for everyone: axe-core finds nothing serious, in both themes and on a phone.

`npm install --no-save --no-package-lock` brings axe-core.
"""

from __future__ import annotations

import os
from itertools import product
from typing import Any

import pytest
from patience import SLOW

from contrastive_core.paths import ROOT

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
FIND = """axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations
  .filter((v) => ["serious", "critical"].includes(v.impact) || v.id === "heading-order")
  .map((v) => `${v.id}: ${v.nodes[0].target} ${v.nodes[0].html.slice(0, 200)}
    ${document.querySelector(v.nodes[0].target[0]).innerText.slice(0, 200)}
    ${v.nodes[0].failureSummary}`))"""
# For half a second the frame's styles are there, nothing waits for Streamlit's code of it (a
# skeleton), no script runs, nothing is stale (what is to be replaced is drawn fainter) and nothing
# fades in or out; a spinner, which turns for ever, does not count.
SETTLED = """() => {
  const moving = (a) => a.playState === "running" && a.effect.getComputedTiming().iterations < 99;
  const busy = "[data-testid=stApp][data-test-script-state=running], [data-stale=true]";
  const framed = document.querySelector(".frame ~ style"),
    awaited = [...document.querySelectorAll("[data-testid=stSkeleton]")];
  if (!framed || awaited.some((e) => e.checkVisibility()) || document.querySelector(busy) ||
    document.getAnimations().some(moving)) window.still = null;
  else window.still ??= performance.now();
  return window.still !== null && performance.now() - window.still > 500;
}"""
BACKGROUND = """() => getComputedStyle(document.querySelector("[data-testid=stApp]"))
  .backgroundColor"""
BACKGROUNDS = {"light": "rgb(252, 252, 251)", "dark": "rgb(20, 25, 31)"}  # as .streamlit has them
PAGES = {  # address and what is there once it has come
    "": "Recent runs",
    "explore": "kNN accuracy",
    "loss_lab": "Weight on each pair",
    "loss_lab?on=circle": "Scatter again",
    "loss_lab?lesson=6": "Effect of labels",
    "train": "Start",
    "compare": "Where they disagree",
    "samples?run=simclr-digits": "Likely mislabeled",
    "runs": "Select a row",
    "methods": "SimCLR",
}


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.exists():
        if os.environ.get("CI"):
            pytest.fail("axe-core is missing")
        pytest.skip("axe-core is not installed")
    return AXE.read_text("utf-8")


@pytest.fixture
def app(shared_app: str) -> str:
    return shared_app


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_for_everyone(name: str, app: str, page: Any, axe: str) -> None:
    page.goto(f"{app}/{name}")
    page.get_by_text(PAGES[name]).first.wait_for(state="attached", timeout=SLOW)
    assert page.locator("[data-testid=stException]").count() == 0
    page.evaluate(axe)
    for theme, width in product(BACKGROUNDS, (1440, 390)):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(f"color => ({BACKGROUND})() === color", arg=BACKGROUNDS[theme], timeout=SLOW)
        page.evaluate("() => { window.still = null; }")
        page.wait_for_function(SETTLED, timeout=SLOW)
        found = page.evaluate(FIND)
        assert not found, "\n".join([f"{theme}, {width} pixels", *found])


def test_it_would_be_seen(browser: Any, axe: str) -> None:
    page = browser.new_page()
    page.set_content("<html lang=en><title>t</title><main><p style='color: #aaa'>faint</p></main>")
    page.evaluate(axe)
    assert any(f.startswith("color-contrast") for f in page.evaluate(FIND))
    page.close()
