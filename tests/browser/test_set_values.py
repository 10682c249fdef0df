"""What a page chooses for a widget is seen in the browser, also where the page is drawn anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("set_script.py")


def test_a_choice_outlives_a_page_that_is_drawn_anew_before_its_end(
    page: Any, serve: Callable[..., str]
) -> None:
    page.goto(serve(SCRIPT))
    shown = page.get_by_test_id("stSelectbox")
    shown.get_by_text("a", exact=True).wait_for()
    for letter in "cba":
        page.get_by_role("button", name=f"choose {letter}").click()
        page.get_by_text(f"picked {letter}").wait_for()
        shown.get_by_text(letter, exact=True).wait_for()
    shown.get_by_role("combobox").click()  # a person's own choice counts as ever
    page.get_by_role("option", name="b", exact=True).click()
    page.get_by_text("picked b").wait_for()
    shown.get_by_text("b", exact=True).wait_for()
