"""The front page as a newcomer meets it: it moves, and each door leads to its goal."""

from __future__ import annotations

import re
from typing import Any

import pytest
from patience import SLOW, settled_box


@pytest.fixture
def app(shared_app: str) -> str:
    return shared_app


def test_the_circle_moves_and_comes_back_when_it_is_disturbed(app: str, page: Any) -> None:
    page.goto(app)
    ring = page.locator(".lab.bare .ring")
    ring.wait_for(timeout=SLOW)
    before = ring.screenshot()
    page.wait_for_timeout(200)
    assert ring.screenshot() != before
    assert page.get_by_role("button", name="Run", exact=True).count() == 0  # the circle alone


def test_it_rests_for_those_who_want_no_motion(app: str, browser: Any) -> None:
    page = browser.new_page(reduced_motion="reduce")
    page.goto(app)
    ring = page.locator(".lab.bare .ring")
    ring.wait_for(timeout=SLOW)
    page.wait_for_timeout(1000)
    before = ring.screenshot()
    page.wait_for_timeout(300)
    assert ring.screenshot() == before
    page.close()


def test_a_refresh_stays_at_the_front_page_and_an_old_address_leads_on(app: str, page: Any) -> None:
    page.goto(app)
    page.get_by_role("heading", name="Recent runs").wait_for(timeout=SLOW)
    page.reload()
    page.get_by_role("heading", name="Recent runs").wait_for(timeout=SLOW)
    page.goto(f"{app}/?run=sup_con-digits")
    page.get_by_role("heading", name="sup_con-digits").wait_for(timeout=SLOW)
    page.get_by_role("link", name="Home").click()
    page.get_by_role("heading", name="Recent runs").wait_for(timeout=SLOW)


def test_one_click_to_the_temperature(app: str, page: Any) -> None:
    page.goto(app)
    page.get_by_role("link", name="See why temperature matters").click()
    said = page.locator(".lab .sentence")
    said.filter(has_text=re.compile(r"At τ = 0\.5, all \d+ negatives are pushed")).wait_for(timeout=SLOW)
    page.get_by_role("heading", name="Lesson 3 of 10").wait_for(timeout=SLOW)
    for position, symbol in ((100, "τ = 0.0"), (500, "τ = 0."), (900, "τ = ")):
        before = said.inner_text()
        page.locator(".lab .knob input").first.evaluate(
            "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', {bubbles: true})); }", position
        )
        page.wait_for_function("([e, before]) => e.textContent !== before", arg=[said.element_handle(), before])
        assert symbol in said.inner_text()


def test_one_click_to_training(app: str, page: Any) -> None:
    page.goto(app)
    page.get_by_role("link", name="Train on my images").click()
    page.get_by_role("textbox", name="Folder").wait_for(timeout=SLOW)
    page.get_by_role("button", name="Start").wait_for(timeout=SLOW)


def test_one_click_to_the_list_of_wrong_labels(app: str, page: Any) -> None:
    page.goto(app)
    page.get_by_role("link", name="Find wrong labels").click()
    page.get_by_text("Likely mislabeled").first.wait_for(timeout=SLOW)
    page.get_by_text(re.compile(r"labeled \S+, wrong with (over )?\d+%")).first.wait_for(timeout=SLOW)


def test_a_card_leads_on_wherever_it_is_clicked(app: str, page: Any) -> None:
    for number in range(3):
        page.goto(app)
        card = page.locator(".st-key-door-train")
        page.get_by_role("heading", name="Recent runs").wait_for(timeout=SLOW)
        box = settled_box(page, card)
        card.click(position={"x": box["width"] * (number + 0.5) / 3, "y": box["height"] - 12})
        page.get_by_role("textbox", name="Folder").wait_for(timeout=SLOW)
    page.goto(app)
    page.get_by_role("link", name="Learn in ten short lessons").click()
    page.get_by_role("heading", name=re.compile(r"Lesson \d of 10")).wait_for(timeout=SLOW)
