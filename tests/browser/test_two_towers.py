"""Two towers in a browser: pairs that are decided on by keys, lines between partners."""

import csv
import io
import re
from typing import Any

import pytest
from map_page import FIND as MAP
from patience import SLOW, repainted

RUN = "clip-shapes"


@pytest.fixture
def app(filled_app: str) -> str:
    return filled_app


def downloaded(page: Any, button: str) -> list[dict[str, str]]:
    save = page.get_by_role("button", name="Save decisions")
    if not page.get_by_role("button", name=button, exact=True).is_visible():
        save.click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name=button, exact=True).click()
    return list(csv.DictReader(io.StringIO(waiting.value.path().read_text("utf-8-sig"))))


def test_pairs_are_decided_on_by_keys_undone_and_saved(app: str, page: Any) -> None:
    page.goto(f"{app}/samples?run={RUN}")
    place = page.locator(".bench h2")

    def at(nth: int) -> None:
        place.filter(has_text=re.compile(rf"^{nth} of ")).wait_for(timeout=SLOW)

    at(1)
    page.locator(".bench .near figure").nth(1).wait_for(timeout=SLOW)
    assert page.locator(".bench .whats button").all_inner_texts() == [
        "Is a matchM",
        "Is no matchN",
        "The other is the matchO",
    ]
    assert not page.locator(".bench select").is_visible()
    assert page.get_by_role("combobox", name="Loss", exact=True).count() == 0
    every = downloaded(page, "This list, with scores (CSV)")
    page.keyboard.press("Escape")
    assert place.inner_text() == f"1 of {len(every):,}"
    assert all(one["decision"] == "" for one in every)
    for nth, key in ((2, "n"), (3, "o"), (4, "m"), (5, "ArrowRight"), (4, "ArrowLeft")):
        page.keyboard.press(key)
        at(nth)
    page.get_by_text(f"3 of {len(every):,} decided").wait_for()
    page.keyboard.press("u")
    at(3)  # what was undone is at hand again
    page.get_by_text(f"2 of {len(every):,} decided").wait_for()
    wrong, moved = downloaded(page, "Only your decisions (CSV)")
    assert (wrong["decision"], moved["decision"]) == ("no match", "matched with the other")
    assert (wrong["caption"], moved["caption"]) == (every[0]["caption"], every[1]["caption"])
    assert moved["matched with"] == every[1]["other image"]
    page.reload()
    page.get_by_text(f"2 of {len(every):,} decided").wait_for()
    page.get_by_role("button", name="Save decisions").click()
    page.get_by_text("Decided: 0 match, 1 no match, 1 matched with the other.").wait_for()


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
