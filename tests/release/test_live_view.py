"""The live view in a browser: what is dragged is computed there, and told once (browser/test_app.py: by a mouse)."""

import re
from typing import Any

import pytest
from live_page import FIND, ask, visit
from patience import repainted


@pytest.fixture(scope="module")
def address(script_pages: str) -> str:
    return f"{script_pages}/live"


def test_a_held_arrow_key_is_one_drag(page: Any, address: str) -> None:
    sent = visit(page, address)
    page.locator(".knob input").first.focus()
    before = ask(page, "lab.value")
    for _ in range(8):
        page.keyboard.down("ArrowLeft")
    repainted(page)
    assert ask(page, "lab.value") < before
    assert sent == []
    page.keyboard.up("ArrowLeft")
    page.get_by_text("runs 2").wait_for()
    assert len(sent) == 1


def test_hover_and_keys_light_the_same_pair(page: Any, address: str) -> None:
    sent = visit(page, address)
    bars = page.locator(".bars")
    bars.hover(position={"x": 40, "y": 11})
    nearest = ask(page, "lab.barRows[0]")
    repainted(page)
    assert ask(page, "lab.hover") == [0, nearest]
    assert f"<b>row {nearest}</b>" in page.locator(".told .hint").inner_text()  # text, not HTML
    page.locator(".matrix").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.get_by_text("anchor 2").wait_for()
    assert ask(page, "lab.anchor") == 2
    page.locator(".bars").focus()
    page.keyboard.press("ArrowDown")
    repainted(page)
    assert ask(page, "lab.barRows.indexOf(lab.hover[1])") >= 0
    assert 1 <= len(sent) <= 2


def test_the_margin_line_can_be_dragged(page: Any, address: str) -> None:
    sent = visit(page, address, "pair")
    page.locator("button[data-key=curves]").click()
    page.get_by_text("runs 2").wait_for()
    sent.clear()
    page.locator("canvas.scores").scroll_into_view_if_needed()
    box = page.locator("canvas.scores").bounding_box()
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 50, steps=5)
    repainted(page)
    assert ask(page, "lab.value") > 1
    assert sent == []
    words = page.locator(".of-scores .hint").inner_text()
    inside = int(re.search(r"(\d+) negatives are inside", words).group(1))
    wanted = "lab.S.filter((d, k) => lab.M[k] === 2 && d < Math.fround(lab.value)).length"
    assert abs(inside - ask(page, wanted)) <= 2
    page.mouse.up()
    page.get_by_text("runs 3").wait_for()


def test_all_of_it_can_be_reached_and_moved_by_keys(page: Any, address: str) -> None:
    """Tab through the view: nothing is left out, focus is seen, and each part answers."""
    visit(page, address, "pair")
    page.locator("button[data-key=star]").focus()
    seen = []
    for _ in range(40):
        active = page.evaluate(
            """() => { let a = document.activeElement;
            while (a?.shadowRoot?.activeElement) a = a.shadowRoot.activeElement;
            if (!a?.closest('.lab')) return null;
            const style = getComputedStyle(a);
            const name = a.className || a.dataset.key || a.textContent || a.type;
            return [name, style.outlineStyle]; }"""
        )
        if active is None:
            break
        seen.append(active)
        page.keyboard.press("Tab")
    assert all(outline != "none" for _, outline in seen), seen
    wanted = ["star", "matrix", "curves", "PNG", "CSV", "range", "number", "matrix", "weight", "score", "grad", "mask"]
    wanted += ["of-matrix", "group", "cluster", "bars", "farther", "Pin as A"]
    assert [name for name, _ in seen] == wanted
    page.locator(".bars").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function(f"() => ({FIND})().hover")
    nearest = ask(page, "lab.hover[1]")
    page.keyboard.press("Enter")
    page.wait_for_function(f"() => ({FIND})().anchor === {nearest}")
    page.get_by_role("button", name="Pin as A").focus()
    page.keyboard.press("Enter")
    page.locator("canvas.two:visible").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"() => ({FIND})().anchor === {nearest} + 1")
    page.locator("button[data-key=curves]").focus()
    page.keyboard.press("Enter")
    page.locator(".knob input").first.focus()
    for _ in range(5):
        page.keyboard.down("ArrowRight")
    page.wait_for_function(f"() => ({FIND})().value === 0.51")
    assert page.locator("math [data-held]").first.text_content() == "ε"  # the letter of the knob that is held
    page.keyboard.up("ArrowRight")
    page.get_by_text(re.compile(r"value 0\.51 ")).wait_for()
    assert page.locator("math [data-held]").count() == 0
    with page.expect_download():
        page.get_by_role("button", name="CSV").focus()
        page.keyboard.press("Enter")
