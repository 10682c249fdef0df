"""Buttons that act on a typed number: while its field holds what it cannot take, they are off and
say why; a form is refused with a sentence. Three times each, with three numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from visits import Visit, filled

from benchmarks.browser import ROOT

PLACES = {  # address, what is clicked first, field, what it cannot take and can, its button
    "many samples": (
        "samples?run=simclr-digits&split=test&every=yes", "button:has-text('relabel many')",
        "The first of this list", ("0", "361", "2.5"), ("1", "3", "360"), r"Drop \d+",
    ),
    "retrain": (
        "samples?run=simclr-digits&split=train&every=yes", ".bench .what:text('Drop')", "Epochs",
        ("0", "10001", "1.5"), ("1", "7", "10000"), r"Retrain with [1-9]\d* change",
    ),
    "adviser": (
        "train?adviser=yes", "", "Minutes", ("0", "-1", "1e9"), ("1", "45", "10000"), "Plan it",
    ),
    "sweep": (
        "runs?view=sweeps&sweep=two", "", "Runs to train now", ("0", "4", "1.5"),
        ("1", "2", "3"), "Start",
    ),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_button_is_off_while_its_number_is_wrong(filled_app: str, page: Any, place: str) -> None:
    address, first, label, bad, good, name = PLACES[place]
    page.set_default_timeout(1000 * PATIENCE)
    Visit(page).open(f"{filled_app}/{address}")
    if first:
        page.locator(first).first.click()
    box = page.get_by_role("spinbutton", name=label).last
    button = page.get_by_role("button", name=re.compile(f"{name}s?$")).last
    error = page.get_by_test_id("stAlertContentError").filter(has_text=label)
    button.wait_for()  # what was clicked first is drawn
    for wrong, right in zip(bad, good, strict=True):
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


def test_a_sweeps_form_refuses_a_number_and_saves_what_stands_in_it(
    serve: Any, page: Any, tmp_path: Path
) -> None:
    page.set_default_timeout(1000 * PATIENCE)
    with filled(tmp_path) as environment:
        app = serve(ROOT / "app.py", environment=environment)
        page.goto(f"{app}/runs?view=sweeps&sweep=a new one…&write=by a form")
        for k, (wrong, right) in enumerate((("0", "1"), ("10001", "7"), ("2.5", "10000"))):
            page.get_by_role("textbox", name="Name", exact=True).fill(f"mine{k}")
            epochs = page.get_by_role("spinbutton", name="Epochs of each run")
            hours = page.get_by_role("spinbutton", name="Hours")
            epochs.fill(wrong)
            hours.fill(("0", "1001", "-1")[k])
            page.get_by_role("button", name="Save the sweep").click()
            page.get_by_text("Epochs of each run must ").wait_for()
            page.get_by_text("Hours after which no new run starts must lie").wait_for()
            assert not (tmp_path / ".sweeps" / f"mine{k}.toml").exists()
            assert float(epochs.input_value()) == float(wrong)
            epochs.fill(right)
            hours.fill("0.5")
            page.get_by_role("button", name="Save the sweep").click()
            page.get_by_text("Still to train").wait_for()
            text = (tmp_path / ".sweeps" / f"mine{k}.toml").read_text()
            assert f"epochs = {right}\n" in text
            assert "budget_hours = 0.5\n" in text
            page.goto(f"{app}/runs?view=sweeps&sweep=a new one…&write=by a form")
