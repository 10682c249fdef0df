"""The live view of two towers in a browser: partners on both sides, and the loss in both directions."""

import re
from typing import Any

import pytest
from live_page import ask, set_slider, visit
from patience import repainted


@pytest.fixture
def address(script_pages: str) -> str:
    return f"{script_pages}/live"


def test_pointing_at_a_caption_shows_its_image_and_choosing_it_makes_that_the_anchor(page: Any, address: str) -> None:
    visit(page, address, "towers", 16)
    width = page.locator(".matrix").bounding_box()["width"]
    strip = ask(page, "lab.plot.strip") / page.evaluate("devicePixelRatio")
    at = strip + (6.5 / 16) * (width - strip)  # caption 6 of image 6
    page.locator(".matrix").hover(position={"x": at, "y": strip / 2})
    repainted(page)
    assert ask(page, "lab.hover") == [None, 6]
    assert page.locator(".told .hint").inner_text().endswith("belongs to <b>row 6</b>")
    first = ask(page, "Array.from(lab.faces.getContext('2d').getImageData(4, 4, 1, 1).data)")
    assert first[3] == 255  # the image of the caption
    page.locator(".matrix").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")  # caption 7 is another one of image 6
    page.get_by_text(re.compile(r"anchor 6$")).wait_for()
    assert ask(page, "lab.anchor") == 6
    page.locator(".matrix").hover(position={"x": strip / 2, "y": at})
    repainted(page)
    assert "belongs to caption 6: of <b>row 6</b>" in page.locator(".told .hint").inner_text()
    assert "and 1 more" in page.locator(".told .hint").inner_text()
    assert "rows: image, columns: caption" in page.locator(".legend").inner_text()
    both = page.locator(".figures small").first.inner_text()
    set_slider(page, 300)
    assert page.locator(".figures small").first.inner_text() != both
