"""Every choice counts: three in a row with every selectable widget of Train, Loss Lab, Compare.

What the labels below name must be among the widgets that are found; others are tried too.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest
from patience import PATIENCE
from visits import Visit, every_choice_counts

PAGES = {
    "train": (
        ("train?watch=simclr-digits",),
        "Method, Data, Epochs, Temperature, Batch size, Learning rate, Seed, "
        "Loss, Encoder, Start at once, Fetch, Watch, Map after epoch, "
        "Not sure, What to choose, Minutes",
    ),
    "loss_lab": (
        ("loss_lab?run=simclr-digits&on=circle",),
        "Lessons, On, Loss, Positives are, Vectors from, Images (views), Batch, denominator",
    ),
    "compare": (
        (
            "compare?runs=simclr-digits,sup_con-digits,cpc-digits&view=Where they disagree",
            "compare?runs=simclr-digits,sup_con-digits,cpc-digits&view=A setting as an axis",
        ),
        "Runs and loaded vectors, Features, Show, Map, They disagree on, Sample, Runs and setting",
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_every_choice_counts(filled_app: str, page: Any, name: str) -> None:
    every_choice_counts(filled_app, page, *PAGES[name])


@pytest.mark.parametrize(
    ("part", "keys"),
    [
        ("view", ["grad", "mask", "score"]),
        ("order", ["cluster", "group", "cluster"]),
        ("panel", ["curves", "formula", "two"]),
    ],
)
def test_choices_within_the_live_view_count(
    filled_app: str, page: Any, part: str, keys: list[str]
) -> None:
    visit = Visit(page)
    visit.open(f"{filled_app}/loss_lab?run=simclr-digits&on=batch&size=32&loss=nt_xent")
    page.locator(".matrix:visible").wait_for(timeout=1000 * PATIENCE)
    for key in keys:
        asked = visit.answers.asked
        page.locator(f"button[data-key={key}]").click()
        visit.answers.wait(asked + 1)
        button = page.locator(f"button[data-key={key}]")
        assert button.get_attribute("aria-pressed") == "true", key
        assert f"{part}={key}" in page.url


def test_choices_of_the_second_setting_count(filled_app: str, page: Any) -> None:
    visit = Visit(page)
    visit.open(f"{filled_app}/loss_lab?run=simclr-digits&on=batch&size=32&loss=nt_xent&panel=two")
    listed = page.locator(".panel select")
    listed.wait_for(timeout=1000 * PATIENCE)
    options = listed.locator("option").evaluate_all("all => all.map((o) => o.value)")
    for option in [o for o in options if o != listed.input_value()][:: len(options) // 4][:3]:
        asked = visit.answers.asked
        listed.select_option(option)
        visit.answers.wait(asked + 1)
        assert listed.input_value() == option
        assert f"second={option}" in unquote(page.url)
