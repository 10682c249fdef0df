"""Train's numbers, typed into a browser: what stands in a box is what starts, or nothing does."""

from __future__ import annotations

from typing import Any

import pytest
from patience import PATIENCE
from visits import Visit

FIELDS = {  # label: name in the address, a value that the field refuses, one that it takes
    "Epochs": ("epochs", "0", "5"),
    "Temperature τ": ("temperature", "-1", "0.0015"),
    "Batch size": ("batch", "2.5", "64"),
    "Learning rate": ("lr", "1e9", "0.003"),
    "Seed": ("seed", "12345678901234567890", "7"),
}


def test_what_is_typed_counts_or_start_is_off(filled_app: str, page: Any) -> None:
    page.set_default_timeout(1000 * PATIENCE)
    Visit(page).open(f"{filled_app}/train")
    step_from_an_empty_field(page)
    start = page.locator(".st-key-start button:visible")  # help comes in two widths
    error = page.get_by_test_id("stAlertContentError")
    for label, (name, wrong, right) in FIELDS.items():
        box = page.get_by_role("spinbutton", name=label)
        box.fill(wrong)
        box.press("Tab")
        error.filter(has_text=label).wait_for()
        start.locator("xpath=self::*[@disabled]").wait_for()
        assert float(box.input_value()) == pytest.approx(float(wrong))
        box.fill(right)
        box.press("Tab")
        start.locator("xpath=self::*[not(@disabled)]").wait_for()
        asked = "([name, text]) => new URLSearchParams(location.search).get(name) * 1 === text * 1"
        page.wait_for_function(asked, arg=[name, right])
        error.first.wait_for(state="detached")
        assert float(box.input_value()) == float(right)


def step_from_an_empty_field(page: Any) -> None:
    """It has no steps, which would lead to the least number there is; a number has."""
    field = page.get_by_test_id("stNumberInput").filter(has_text="Temperature")
    box, up = field.get_by_role("spinbutton"), field.get_by_test_id("stNumberInputStepUp")
    assert box.input_value() == ""
    assert not up.is_visible()
    box.fill("0.3")
    box.press("Tab")
    page.wait_for_url("**temperature=0.3*")
    up.click()
    page.wait_for_function("() => new URLSearchParams(location.search).get('temperature') > 0.3")
