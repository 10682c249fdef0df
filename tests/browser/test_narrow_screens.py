"""Pages on a phone: tables with whole words, maps that fill their stage, lessons beside theirs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from patience import SLOW

WIDTH = 390
# Words of an element that stand on two lines, or out of the screen.
BROKEN = """table => {
  const found = [], texts = document.createTreeWalker(table, NodeFilter.SHOW_TEXT);
  for (let node; (node = texts.nextNode()); )
    for (const { 0: word, index } of node.data.matchAll(/[A-Za-z]{2,}/g)) {
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const boxes = [...range.getClientRects()];
      if (boxes.length > 1 || boxes.some((b) => b.right > innerWidth)) found.push(word);
    }
  return found;
}"""


# What stands before the first cell behind the head of the first row; false while it is "none".
SAID = """() => {
  const cell = document.querySelectorAll("[data-testid=stMain] table td")[1];
  const said = cell && getComputedStyle(cell, "::before").content;
  return said !== "none" && said;
}"""


@pytest.fixture
def app(shared_app: str) -> str:
    return shared_app


@pytest.fixture
def phone(page: Any) -> Iterator[Any]:
    page.set_viewport_size({"width": WIDTH, "height": 844})
    return page


@pytest.mark.parametrize("address", ["methods?method=simclr", "methods?beside=moco_v1,sup_con"])
def test_no_word_of_a_methods_tables_is_broken(app: str, phone: Any, address: str) -> None:
    phone.goto(f"{app}/{address}")
    tables = phone.locator("[data-testid=stMain] table")
    tables.first.wait_for(timeout=SLOW)
    phone.wait_for_function(SAID, timeout=SLOW)  # Streamlit fetches what draws styles late
    assert phone.evaluate(SAID) in ('"value"', '"Metric learning"')  # a cell says its column
    for table in tables.all():
        assert not table.evaluate(BROKEN)


def test_the_filters_of_runs_fold(app: str, phone: Any) -> None:
    phone.goto(f"{app}/runs")
    phone.get_by_role("textbox", name="Search").wait_for(timeout=SLOW)
    status = phone.get_by_label("Status", exact=True)
    status.wait_for(state="hidden", timeout=SLOW)
    phone.get_by_text("Filters", exact=True).click()
    status.wait_for(timeout=SLOW)


@pytest.mark.parametrize("runs", [2, 3])
def test_compares_maps_stand_below_each_other_and_fill_their_stage(app: str, phone: Any, runs: int) -> None:
    names = ["simclr-digits", "sup_con-digits", "moco_v1-digits"][:runs]
    phone.goto(f"{app}/compare?runs={','.join(names)}")
    stage = phone.locator(".map .stage")
    stage.wait_for(timeout=SLOW)
    phone.wait_for_function(
        """([stage, runs]) => stage.clientWidth > 300 &&
          Math.abs(stage.clientHeight - 40 - runs * (stage.clientWidth - 40)) < 10""",
        arg=[stage.element_handle(), runs],
        timeout=SLOW,
    )


def test_a_lesson_has_its_bars_above_the_matrix(app: str, phone: Any) -> None:
    """What a lesson asks about comes right below it, the rows of choices after it."""
    phone.goto(f"{app}/loss_lab?lesson=1")
    phone.locator(".lab .bars").wait_for(timeout=SLOW)
    tops = [
        phone.locator(f".lab {part}").first.bounding_box()["y"]
        for part in (".lesson", ".held", ".bars", ".matrix", ".figures", ".panels")
    ]
    assert tops == sorted(tops)


def test_a_lesson_on_the_circle_has_its_buttons_and_the_circle_on_one_screen(app: str, phone: Any) -> None:
    phone.goto(f"{app}/loss_lab?lesson=2")
    ring, run = phone.locator(".lab .ring"), phone.get_by_role("button", name="Run", exact=True)
    ring.wait_for(timeout=SLOW)
    box, pressed = ring.bounding_box(), run.bounding_box()
    assert pressed["y"] + pressed["height"] < 844
    assert 0 < box["y"] + box["height"] - pressed["y"] < 844 - 60  # below the bar at the top


def test_controls_of_the_map_fit_and_a_disabled_button_is_read_in_the_dark(app: str, browser: Any) -> None:
    context = browser.new_context(color_scheme="dark", viewport={"width": WIDTH, "height": 844})
    page = context.new_page()
    page.goto(f"{app}/explore?run=simclr-digits")
    choices = page.locator(".st-key-map-choices")
    choices.wait_for(timeout=SLOW)
    assert choices.evaluate("e => e.scrollWidth <= e.clientWidth && e.offsetHeight < 200")
    page.get_by_role("button", name="Open my embeddings").click(timeout=SLOW)
    button = page.get_by_role("button", name="Look at it")
    button.wait_for(timeout=SLOW)
    assert button.is_disabled()
    color = button.locator("p").evaluate("e => getComputedStyle(e).color")
    assert int(color.split("(")[1].split(",")[0]) > 150, color  # light, on the dark page
    context.close()
