"""The app in Chinese: the switch between the languages and the flow of a method; test_every_page.py reads the pages."""

from __future__ import annotations

import re
from typing import Any

import pytest
from page_checks import settled
from patience import SLOW


@pytest.fixture
def app(shared_app: str) -> str:
    return shared_app


def test_switch_in_the_browser_three_times(app: str, page: Any) -> None:
    """A list, whose choice the browser keeps as a text, speaks the new language at once and keeps
    its choice; the address says the language, on the next page too."""
    page.goto(f"{app}/explore?run=simclr-digits")
    settled(page)
    for _ in range(3):
        switch(page, "中文", "无")
        assert page.evaluate("document.documentElement.lang") == "zh-CN"  # for a screen reader
        switch(page, "English", "nothing else")
        assert page.evaluate("document.documentElement.lang") == "en"
    switch(page, "中文", "无")
    page.wait_for_url(re.compile("lang=zh"))
    page.get_by_test_id("stSidebarNav").get_by_text("方法", exact=True).click()
    page.wait_for_url(re.compile(r"/methods\?.*lang=zh"))
    page.get_by_role("heading", name="方法", exact=True).wait_for(timeout=SLOW)


def switch(page: Any, language: str, chosen: str) -> None:
    page.get_by_test_id("stSidebar").get_by_text(language, exact=True).click()
    page.wait_for_function(
        """(said) => [...document.querySelectorAll("[data-testid=stSelectbox] input")]
          .some((input) => input.value === said)""",
        arg=chosen,
        timeout=SLOW,
    )


def test_the_flow_of_a_method_is_drawn_in_chinese(app: str, page: Any) -> None:
    """From left to right where there is room, else downwards; no label of it is English."""
    page.goto(f"{app}/methods?method=moco_v2&lang=zh")
    for width, kind in ((1440, "wide"), (1024, "upright"), (390, "upright")):
        page.set_viewport_size({"width": width, "height": 900})
        flow = page.locator(f".flow.{kind}")
        flow.wait_for(timeout=SLOW)
        assert page.locator(".flow:visible").count() == 1
        page.wait_for_function(
            "([e, width]) => e.getBoundingClientRect().right <= width", arg=[flow.element_handle(), width]
        )
        svg = flow.evaluate("e => atob(e.src.split(',')[1])").encode("latin-1").decode()
        assert "旧键队列" in re.sub(r"</tspan><tspan[^>]*>", "", svg)
        labels = re.sub(r"<[^>]+>", " ", svg)
        assert not re.search(r"\b(encoder|head|queue|gradient|view)\b", labels), labels
