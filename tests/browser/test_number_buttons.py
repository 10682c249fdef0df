"""Buttons that act on a typed number: while its field holds what it cannot take, they are off and
say why; a form is refused with a sentence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from visits import Visit

PLACES = {  # address: what is clicked first, field, what it cannot take and can, its button
    "samples?run=simclr-digits&split=train&every=yes": [
        ("button:has-text('relabel many')", "The first of this list", "1438", "3", r"Drop \d+"),
        (".bench .what:text('Drop')", "Epochs", "1.5", "7", r"Retrain with [1-9]\d* change"),
    ],
    "train?adviser=yes": [("", "Minutes", "-1", "45", "Plan it")],
    "runs?view=sweeps&sweep=two": [("", "Runs to train now", "4", "2", "Start")],
}


@pytest.mark.parametrize("address", PLACES)
def test_a_button_is_off_while_its_number_is_wrong(filled_app: str, page: Any, address: str) -> None:
    page.set_default_timeout(1000 * PATIENCE)
    Visit(page).open(f"{filled_app}/{address}")
    for first, label, wrong, right, name in PLACES[address]:
        if first:
            page.locator(first).first.click()
        box = page.get_by_role("spinbutton", name=label).last
        button = page.get_by_role("button", name=re.compile(f"{name}s?$")).last
        error = page.get_by_test_id("stAlertContentError").filter(has_text=label)
        button.wait_for()  # what was clicked first is drawn
        box.fill(wrong)
        box.press("Tab")
        error.wait_for()
        button.locator("xpath=self::*[@disabled]").wait_for()
        assert float(box.input_value()) == float(wrong)
        button.hover(force=True)
        said = page.get_by_role("tooltip").filter(has_text=label)
        said.wait_for()
        assert said.inner_text().strip() == error.inner_text().strip()
        page.mouse.move(0, 0)
        box.fill(right)
        box.press("Tab")
        error.wait_for(state="detached")
        button.locator("xpath=self::*[not(@disabled)]").wait_for()
        assert float(box.input_value()) == float(right)
        page.keyboard.press("Escape")


def test_a_sweeps_form_refuses_a_number_and_saves_what_stands_in_it(
    filled_app: str, filled_home: Path, page: Any
) -> None:
    page.set_default_timeout(1000 * PATIENCE)
    file = filled_home / ".sweeps" / "mine.toml"
    page.goto(f"{filled_app}/runs?view=sweeps&sweep=a new one…&write=by a form")
    page.get_by_role("textbox", name="Name", exact=True).fill("mine")
    epochs = page.get_by_role("spinbutton", name="Epochs of each run")
    hours = page.get_by_role("spinbutton", name="Hours")
    epochs.fill("10001")
    hours.fill("1001")
    page.get_by_role("button", name="Save the sweep").click()
    page.get_by_text("Epochs of each run must ").wait_for()
    page.get_by_text("Start no new run after this many hours must lie").wait_for()
    assert not file.exists()
    assert float(epochs.input_value()) == 10001
    epochs.fill("7")
    hours.fill("0.5")
    page.get_by_role("button", name="Save the sweep").click()
    page.get_by_text("Still to train").wait_for()
    text = file.read_text()
    file.unlink()
    assert "epochs = 7\n" in text
    assert "budget_hours = 0.5\n" in text
