"""Maps of Compare and Explore with planted data: maps that move, images on a map, selections from elsewhere."""

from typing import Any
from urllib.parse import quote

import pytest
from map_page import FIND as MAP
from map_page import ask, at, told, visit, zoom_to
from patience import SLOW, repainted
from planted_spaces import Planted, planted

__all__ = ["planted"]


def picture(canvas: Any) -> str:
    """What a canvas shows itself: in a screenshot, the corners of the boxes above it differ by 2 of 255 at times."""
    return str(canvas.evaluate("c => c.toDataURL()"))


def test_a_slider_moves_every_map_onto_the_first(planted: Planted, page: Any) -> None:
    page.goto(f"{planted.address}/compare?runs=worse,good&map=pca")
    canvas = page.locator(".map .stage canvas").first
    canvas.wait_for(timeout=SLOW)
    page.get_by_text("PCA of 360 samples").wait_for(timeout=SLOW)
    page.locator(".st-key-compare-strip").wait_for(timeout=SLOW)  # which takes room from the map
    page.get_by_text("point at one to see it on both maps").wait_for(timeout=SLOW)
    before = picture(canvas)
    for _ in range(60):  # until the map has its height
        page.wait_for_timeout(1000)
        last, before = before, picture(canvas)
        if last == before:
            break
    slider = page.get_by_label("move every point towards its place on ● worse")
    slider.focus()
    slider.press("End")
    repainted(page)
    assert picture(canvas) != before
    play = page.get_by_role("button", name="move every point to its place")
    for end in ("0", "1"):  # and back
        play.click()
        page.wait_for_function("([slider, end]) => slider.value === end", arg=[slider.element_handle(), end])
    play.click()
    page.wait_for_function("slider => slider.value === '0'", arg=slider.element_handle())
    for _ in range(20):  # until the last point rests
        if (now := picture(canvas)) == before:
            break
        page.wait_for_timeout(500)
    assert now == before


def test_images_stay_in_view_when_the_map_is_zoomed_and_leave_by_their_button(planted: Planted, page: Any) -> None:
    page.goto(f"{planted.address}/explore?run=good")
    page.wait_for_function(f"() => ({MAP})()?.laidOut?.rows.length === 40", timeout=SLOW)
    page.locator(".map .stage canvas").first.focus()
    for _ in range(3):
        page.keyboard.press("+")
    page.wait_for_function(f"() => {{ const m = ({MAP})(); return m.view.scale > 1.9 * m.whole; }}")
    repainted(page)
    places = page.evaluate(f"() => {{ const m = ({MAP})(); return [...m.laidOut.wanted]; }}")
    box = page.locator(".map .stage").bounding_box()
    assert all(0 <= v < (box["height"] if k % 2 else box["width"]) for k, v in enumerate(places))
    page.get_by_role("button", name="whole map").click()
    repainted(page)
    over = page.locator(".map canvas.over")
    before = over.evaluate("c => c.toDataURL()")
    page.get_by_role("button", name="images", exact=True).click()
    repainted(page)
    assert over.evaluate("c => c.toDataURL()") != before


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
        page.wait_for_function(f"() => ({MAP})().hover === {i}")
        picture = page.locator(".tip canvas")
        picture.wait_for()
        assert abs(picture.evaluate(ink) - i % 5 * 50) < 3
        page.wait_for_function(
            f"() => {{ const map = ({MAP})(), inside = {IN_VIEW}, "
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
