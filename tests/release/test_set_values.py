"""What a page chooses for the sidebar, turning to another, is seen in the browser and stays."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("set_script.py")


def test_a_choice_outlives_the_turn_to_another_page(page: Any, serve: Callable[..., str]) -> None:
    from playwright.sync_api import expect  # where it is missing, tests are skipped

    page.goto(serve(SCRIPT))
    shown = page.get_by_role("combobox")
    for letter in "cb":
        page.get_by_role("button", name=f"choose {letter}").click()
        page.get_by_text(f"picked {letter} on Second").wait_for()
        page.get_by_role("button", name="draw").click()
        page.wait_for_timeout(500)  # the browser's own choice would be taken up now
        page.get_by_text(f"picked {letter} on Second").wait_for()
        expect(shown).to_have_value(letter)
        page.get_by_role("button", name="back").click()
        page.get_by_text(f"picked {letter} on First").wait_for()
    shown.click()  # a person's own choice counts as ever
    page.get_by_role("option", name="b", exact=True).click()
    page.get_by_text("picked b on First").wait_for()
    expect(shown).to_have_value("b")
