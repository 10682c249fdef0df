"""Two towers in a browser: pairs that are decided on by keys, sentences that find images, lines between partners."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from patience import SLOW, repainted
from test_scatter import FIND as MAP

RUN = "clip-shapes"


@pytest.fixture
def app(filled_app: str) -> str:
    return filled_app


def at(page: Any, place: int, of: str) -> None:
    page.get_by_text(f"{place} of {of}", exact=True).wait_for()


def downloaded(page: Any, button: str) -> list[dict[str, str]]:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=button, exact=True).click()
    return list(csv.DictReader(io.StringIO(waiting.value.path().read_text("utf-8-sig"))))


def test_pairs_are_decided_on_by_keys_undone_and_saved(app: str, page: Any) -> None:
    page.goto(f"{app}/samples?run={RUN}")
    n = page.get_by_text(re.compile(r"^1 of [\d,]+$")).inner_text().removeprefix("1 of ")
    assert page.get_by_role("combobox", name="Loss", exact=True).count() == 0
    every = downloaded(page, "This list as CSV")
    assert f"{len(every):,}" == n
    assert all(one["decision"] == "" for one in every)
    at(page, 1, n)
    for place, key in ((2, "m"), (3, "t"), (4, "k"), (5, "ArrowRight"), (4, "ArrowLeft")):
        page.keyboard.press(key)
        at(page, place, n)
    page.get_by_text("Decided: 1 kept, 1 mismatched, 1 with another partner.", exact=True).wait_for()
    page.keyboard.press("u")
    at(page, 3, n)  # what was undone is at hand again
    page.get_by_text("Decided: 0 kept, 1 mismatched, 1 with another partner.", exact=True).wait_for()
    wrong, moved = downloaded(page, "Decisions as CSV")
    assert (wrong["decision"], moved["decision"]) == ("mismatched", "true partner")
    assert (wrong["query"], moved["query"]) == (every[0]["query"], every[1]["query"])
    assert moved["true partner"] == every[1]["other"]
    page.reload()
    page.get_by_text("Decided: 0 kept, 1 mismatched, 1 with another partner.", exact=True).wait_for()


def test_a_sentence_finds_images_and_says_which_words_it_does_not_know(app: str, page: Any) -> None:
    page.goto(f"{app}/explore?run={RUN}&features=towers")
    page.get_by_text("Zero-shot accuracy").first.wait_for()
    field = page.get_by_role("textbox", name="Find images by a sentence", exact=True)
    field.fill("a red disc, xyzzy")
    field.press("Enter")
    page.get_by_text("Words that are not in the training captions: xyzzy.").wait_for()
    page.get_by_text("As a table", exact=True).wait_for()
    found = page.get_by_role("group", name="images nearest to the sentence").get_by_role("button")
    found.first.wait_for()
    assert found.count() == 12
    field.fill("xyzzy")
    field.press("Enter")
    page.get_by_text("The training captions have none of these words: xyzzy.").wait_for()


def test_prompts_without_a_place_for_the_class_are_refused(app: str, page: Any) -> None:
    page.goto(f"{app}/explore?run={RUN}&features=towers")
    page.get_by_role("button", name="Zero-shot prompts").click()
    field = page.get_by_role("textbox", name="Templates, one a line", exact=True)
    field.fill("a photo")
    field.press("Control+Enter")
    page.get_by_text("A template needs one pair of braces where the class name goes. Got: a photo").wait_for()


def test_lines_join_partners_on_the_map(app: str, page: Any) -> None:
    page.goto(f"{app}/explore?run={RUN}&features=towers")
    button = page.get_by_role("button", name="partners", exact=True)
    button.wait_for(timeout=SLOW)
    repainted(page)
    count = f"({MAP})().canvas.toDataURL()"
    without = page.evaluate(count)
    button.click()
    repainted(page)
    assert button.get_attribute("aria-pressed") == "true"
    assert page.evaluate(count) != without
    button.click()
    repainted(page)
    assert page.evaluate(count) == without
