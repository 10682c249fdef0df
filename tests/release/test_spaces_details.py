"""Compare and Explore with planted data: maps that move, images on a map."""

from typing import Any

from map_page import FIND as MAP
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
