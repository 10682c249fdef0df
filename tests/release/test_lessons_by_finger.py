"""The lessons in the app on a phone, answered with a finger."""

from collections.abc import Callable
from typing import Any

import pytest
from lessons_by_hand import GOAL_OF, begun, choose_loss, done, type_into
from patience import SLOW

from contrastive_core.base.storage import ROOT


@pytest.fixture(scope="module")
def app(serve: Callable[..., str]) -> str:
    """An app of their own: a lesson that is finished says so, and is longer, in every session of its home."""
    return serve(ROOT / "app.py")


def test_lessons_with_a_finger(app: str, browser: Any) -> None:
    context = browser.new_context(has_touch=True, viewport={"width": 390, "height": 844})
    context.set_default_timeout(SLOW)
    page = context.new_page()

    def touch(slider_at: float) -> None:
        slider = page.locator(".knob input[type=range]").first
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        slider.tap(position={"x": slider_at * box["width"], "y": box["height"] / 2})

    page.goto(f"{app}/loss_lab?lesson=3")
    begun(page, 3)
    touch(0.2)
    done(page)
    page.get_by_role("button", name="Back").tap()
    begun(page, 2)
    page.get_by_role("button", name="Back").tap()
    begun(page, 1)
    page.locator(".bars").tap(position={"x": 60, "y": 11})
    done(page).tap()
    begun(page, 2)
    page.get_by_role("button", name="Run").tap()
    done(page).tap()
    begun(page, 3)
    touch(0.2)
    page.goto(f"{app}/loss_lab?lesson=9")
    begun(page, 9)
    choose_loss(page, "hard_negative", by_finger=True)
    type_into(page, "β, weight of hard negatives", "4")
    page.locator(".goals").filter(has_text=GOAL_OF[9]).wait_for(timeout=SLOW)
    choose_loss(page, "info_nce", by_finger=True)
    page.get_by_role("checkbox", name="m, margin for false negatives").tap()
    type_into(page, "m, margin for false negatives", "-0.3")
    done(page).tap()
    begun(page, 10)
    touch(0.2)
    choose_loss(page, "siglip", by_finger=True)
    type_into(page, "b, bias", "-9")
    done(page)
    page.get_by_role("button", name="Leave").tap()
    page.locator(".lesson:visible").wait_for(state="detached", timeout=SLOW)
    context.close()
