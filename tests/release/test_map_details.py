"""The map in a browser: images that are brought, selections from elsewhere, names as keys."""

from typing import Any
from urllib.parse import quote

import pytest
from map_page import FIND, ask, at, told, visit, zoom_to


@pytest.fixture(scope="module")
def address(script_pages: str) -> str:
    return f"{script_pages}/scatter"


def test_a_selection_from_elsewhere_is_lit(page: Any, address: str) -> None:
    visit(page, address, given=1)
    assert ask(page, "map.picked") == [1, 2, 3]
    assert "rows 3 sum 6" in told(page)


IN_VIEW = """(() => { const v = map.view, found = [];
  for (let i = 0; i < map.n; i++) {
    const x = map.xy[2 * i] * v.scale + v.x, y = v.y - map.xy[2 * i + 1] * v.scale;
    if (x >= 0 && y >= 0 && x < map.stage.clientWidth && y < map.stage.clientHeight) found.push(i);
  }
  return found; })()"""


def test_images_that_the_sheet_lacks_are_brought(page: Any, address: str) -> None:
    """Pointed at three times, and those in view; the page is not drawn anew."""
    visit(page, address, view=1, some=1, bring=1)  # every third row has its image at first
    ink = "c => c.getContext('2d').getImageData(20, 20, 1, 1).data[0]"
    for i in (1, 4, 8):
        zoom_to(page, i, 1 if i > 1 else 22)
        page.mouse.move(*at(page, i))
        page.wait_for_function(f"() => ({FIND})().hover === {i}")
        picture = page.locator(".tip canvas")
        picture.wait_for()
        assert abs(picture.evaluate(ink) - i % 5 * 50) < 3
        page.wait_for_function(
            f"() => {{ const map = ({FIND})(), inside = {IN_VIEW}, "
            "brought = map.brought.flatMap((some) => [...some.places.keys()]); "
            "return inside.slice(0, 60).filter((row) => row % 3).every((row) => brought.includes(row)); }"
        )
    assert told(page).startswith("runs 1 ")


def test_a_gallery_tells_which_pictures_are_chosen(page: Any, script_pages: str) -> None:
    page.goto(f"{script_pages}/gallery")
    pictures = page.locator(".gallery button")
    pictures.nth(2).wait_for()
    assert pictures.nth(2).inner_text() == "<b>2</b>"
    pictures.nth(2).click()
    page.get_by_text("chosen [1, 2]").wait_for()
    assert pictures.nth(2).get_attribute("aria-pressed") == "true"
    pictures.nth(1).focus()
    page.keyboard.press("Enter")
    page.get_by_text("chosen [2]").wait_for()


@pytest.mark.parametrize("key", ["a__b", "ä/…__<i>", "x" * 200])
def test_a_key_may_hold_any_name(page: Any, address: str, key: str) -> None:
    """Class and file names go into keys; Streamlit refuses two underscores in a component's."""
    visit(page, address, key=quote(key))
    page.locator("canvas").first.focus()
    page.keyboard.press("a")
    page.get_by_text("runs 2 rows 600").wait_for()
