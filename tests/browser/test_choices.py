"""The second choice counts as the first did, with what only a selection or the live view offers; test_every_page.py
tries the widgets that pages begin with."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from choices import CHOICES, shown
from patience import PATIENCE
from visits import Visit


def test_each_of_some_selected_samples_can_be_looked_at(filled_app: str, page: Any) -> None:
    """What stands on Explore only while samples are selected on its map."""
    visit = Visit(page)
    visit.open(f"{filled_app}/explore?run=simclr-digits&map=pca")
    page.get_by_role("button", name="box", exact=True).click()
    box = page.locator(".map .stage canvas").first.bounding_box()
    asked = visit.answers.asked
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + box["height"] - 5, steps=4)
    page.mouse.up()
    visit.answers.wait(asked + 1)
    name = next(n for n in shown(page) if "Neighbors of" in n)
    visit.try_out(name)
    assert visit.tried[name] == CHOICES


PARTS = (  # of the live view, and choices in them; the last panel has a list of its own
    ("view", ("grad", "mask", "score")),
    ("order", ("cluster", "group", "cluster")),
    ("panel", ("curves", "formula", "two")),
)


def test_choices_within_the_live_view_count(filled_app: str, page: Any) -> None:
    visit = Visit(page)
    visit.open(f"{filled_app}/loss_lab?run=simclr-digits&on=batch&size=32&loss=nt_xent")
    page.locator(".matrix:visible").wait_for(timeout=1000 * PATIENCE)
    for part, keys in PARTS:
        for key in keys:
            asked = visit.answers.asked
            page.locator(f"button[data-key={key}]").click()
            visit.answers.wait(asked + 1)
            button = page.locator(f"button[data-key={key}]")
            assert button.get_attribute("aria-pressed") == "true", key
            assert f"{part}={key}" in page.url
    listed = page.locator(".panel select")
    listed.wait_for(timeout=1000 * PATIENCE)
    options = listed.locator("option").evaluate_all("all => all.map((o) => o.value)")
    for option in [o for o in options if o != listed.input_value()][:: len(options) // 4][:3]:
        asked = visit.answers.asked
        listed.select_option(option)
        visit.answers.wait(asked + 1)
        assert listed.input_value() == option
        assert f"second={option}" in unquote(page.url)
