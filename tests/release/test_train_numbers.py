"""Train's numbers in a browser: a number outside stays in its box and stops Start with a reason; emptied it has its
default."""

from typing import Any

import pytest
from patience import PATIENCE
from visits import Visit

FIELDS = {  # label: a value that the field refuses, one that it takes
    "Epochs": ("0", "5"),
    "Temperature τ": ("-1", "0.0015"),
    "Learning rate": ("1e9", "0.003"),
    "Seed": ("12345678901", "7"),
}


def test_a_box_says_what_it_cannot_take(filled_app: str, page: Any) -> None:
    page.set_default_timeout(1000 * PATIENCE)
    visit = Visit(page)
    visit.open(f"{filled_app}/train")
    refusal = page.get_by_test_id("stAlert").filter(has_text="must be at")
    for label, (wrong, right) in FIELDS.items():
        if label == "Temperature τ":
            page.get_by_role("button", name="Temperature, batch, rate, seed, name").click()
        field = page.get_by_test_id("stNumberInput").filter(has_text=label)
        box = field.get_by_role("spinbutton")
        before = box.input_value()
        box.fill(wrong)
        box.press("Tab")
        refusal.filter(has_text=label).first.wait_for()
        assert page.get_by_role("button", name="Start", exact=True).is_disabled()
        assert float(box.input_value()) == float(wrong)
        asked = visit.answers.asked
        box.fill(right)
        box.press("Tab")
        visit.answers.wait(asked + 1)
        refusal.first.wait_for(state="detached")
        assert float(box.input_value()) == pytest.approx(float(right))
        box.fill("")
        box.press("Tab")
        emptied = "" if before == "" else right  # without a placeholder it keeps the last number
        page.wait_for_function("([box, text]) => box.value === text", arg=[box.element_handle(), emptied])
