"""What a field says of itself: no screen reader hears a backslash, and no placeholder is cut off at
1440, 1024 and 390 pixels, in both languages."""

from __future__ import annotations

from typing import Any

import pytest
from patience import SLOW, repainted
from visits import Visit

PAGES = (
    "",
    "explore?run=two-0.2-s0",
    "loss_lab?run=two-0.2-s0",
    "loss_lab?on=circle",
    "train?watch=two-0.2-s0&adviser=yes",
    "train?data=folder",
    "compare?runs=simclr-digits,two-0.2-s0",
    "samples?run=simclr-digits",
    "samples?run=simclr-digits&split=test&part=Across runs",
    "runs",
    "runs?view=sweeps&sweep=a new one…",
    "runs?view=import",
    "runs?view=import&source=model",
    "methods?beside=moco_v2",
)
WITH_PLACEHOLDERS = ("explore?run=two-0.2-s0", "train?data=folder", "runs?view=import&source=model")
WIDTHS = (1440, 1024, 390)
# Both look into the parts' shadows too.
ALL = """const all = (root) => [...root.querySelectorAll("*")].flatMap((e) =>
  e.shadowRoot ? [e, ...all(e.shadowRoot)] : [e]);"""
ESCAPED = f"""() => {{ {ALL}
  const said = ["aria-label", "aria-description", "title", "alt", "placeholder"];
  return all(document).flatMap((e) => said.map((name) => e.getAttribute(name) ?? ""))
    .filter((text) => text.includes("\\\\"));
}}"""
CUT = f"""() => {{ {ALL}
  const pen = document.createElement("canvas").getContext("2d");
  return all(document).filter((e) => e.matches("input:placeholder-shown") && e.clientWidth)
    .filter((e) => {{
      const style = getComputedStyle(e);
      pen.font = style.font;
      const room = e.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
      return pen.measureText(e.placeholder).width > room + 0.5;
    }}).map((e) => `${{e.ariaLabel}}: ${{e.placeholder}}`);
}}"""
FOLDED = "[data-testid=stExpander] details:not([open]) > summary"
POPOVERS = "[data-testid=stMain] [data-testid=stPopover] button:visible"


@pytest.mark.parametrize(("address", "language"), [(p, "en") for p in PAGES] + [(p, "zh") for p in WITH_PLACEHOLDERS])
def test_labels_are_words_and_no_placeholder_is_cut(filled_app: str, page: Any, address: str, language: str) -> None:
    page.set_default_timeout(SLOW)
    visit = Visit(page)
    visit.open(f"{filled_app}/{address}{'&' if '?' in address else '?'}lang={language}")
    while (folded := page.locator(FOLDED)).count():
        folded.first.click()
    for number in range(-1, page.locator(POPOVERS).count()):  # the page itself, then what opens
        if number >= 0:
            page.locator(POPOVERS).nth(number).click()
            page.get_by_test_id("stPopoverBody").first.wait_for()
            visit.answers.wait(0)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            repainted(page)
            assert page.evaluate(ESCAPED) == []
            assert page.evaluate(CUT) == [], width
        if number >= 0:
            page.keyboard.press("Escape")
            page.get_by_test_id("stPopoverBody").first.wait_for(state="detached")


def test_both_would_be_seen(page: Any) -> None:
    page.set_content(
        '<input placeholder="fits"><input style="width: 20px" placeholder="cut off">'
        '<button aria-label="simclr\\\\-shapes">x</button>'
    )
    assert page.evaluate(CUT) == ["null: cut off"]
    assert page.evaluate(ESCAPED) == ["simclr\\\\-shapes"]
