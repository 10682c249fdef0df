"""The app in Chinese: the switch between the languages and the flow of a method; test_every_page.py reads the pages."""

from typing import Any

import pytest
from page_checks import settled
from patience import SLOW


@pytest.fixture
def app(filled_app: str) -> str:
    return filled_app


def test_switch_in_the_browser_three_times(app: str, page: Any) -> None:
    """A list, whose choice the browser keeps as a text, speaks the new language at once and keeps
    its choice; the address says the language, on the next page too."""
    page.goto(f"{app}/explore?run=simclr-digits")
    settled(page)
    for _ in range(3):
        switch(page, "中文", "类别")
        page.wait_for_function("() => document.documentElement.lang === 'zh-CN'", timeout=SLOW)  # for a screen reader
        switch(page, "English", "class")
        page.wait_for_function("() => document.documentElement.lang === 'en'", timeout=SLOW)
    switch(page, "中文", "类别")
    page.wait_for_function("() => location.search.includes('lang=zh')", timeout=SLOW)
    settled(page)  # the menu is drawn anew in the new language: a click before that may meet the old one
    page.get_by_role("link", name="方法", exact=True).click()
    page.get_by_role("heading", name="方法", exact=True).wait_for(timeout=SLOW)
    page.wait_for_function("() => /methods.*lang=zh/.test(location.href)", timeout=SLOW)


def switch(page: Any, language: str, chosen: str) -> None:
    page.locator(".st-key-corner").get_by_text(language, exact=True).click()
    page.wait_for_function(
        """(said) => [...document.querySelectorAll("[data-testid=stSelectbox] input")]
          .some((input) => input.value === said)""",
        arg=chosen,
        timeout=SLOW,
    )
