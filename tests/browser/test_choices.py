"""Every choice counts: three in a row with every widget of Explore, Samples, Runs, Methods.

What the labels below name must be among the widgets that are found; others are tried too.
"""

from __future__ import annotations

from typing import Any

import pytest
from choices import CHOICES, shown
from visits import Visit, every_choice_counts

PAGES = {
    "explore": (
        ("explore?run=simclr-digits",),
        "Images, Features, Map, Color by, Place on this map, More, Seed, Neighbors, min_dist, "
        "Metric",
    ),
    "samples": (
        (
            "samples?run=simclr-digits&split=test",
            "samples?run=simclr-digits&split=test&list=outlier",
            "samples?run=simclr-digits&split=test&part=Across runs",
        ),
        "Images, Loss, Part, List, More of it, As, The first of this list, Against, Samples",
    ),
    "runs": (
        (
            "runs",
            "runs?view=import",
            "runs?view=sweeps&sweep=two",
            "runs?view=sweeps&sweep=a new one…",
        ),
        "View, What to import, Status, Method, Show, Yes, Sweep, To be judged on, Accuracy, "
        "Runs to train now, Write it, Epochs of each run, Hours, Drawn as, Starting from",
    ),
    "methods": (("methods", "methods?beside=moco_v2"), "Run, Method, Set beside it, Data set"),
}


@pytest.mark.parametrize("name", PAGES)
def test_every_choice_counts(filled_app: str, page: Any, name: str) -> None:
    every_choice_counts(filled_app, page, *PAGES[name])


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
    visit.first = list(shown(page))
    visit.try_out(name)
    assert visit.tried[name] == CHOICES
