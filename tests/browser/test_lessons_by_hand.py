"""The ten lessons in the app, each answered by doing it, by keys alone and in Chinese;
release/test_lessons_by_finger.py goes through them in English."""

import re
from typing import Any

import pytest
from lessons_by_hand import (
    FOCUSED,
    FURTHER,
    GOAL,
    GOAL_OF,
    HALF,
    LEFT,
    OFF,
    TRIPLETS,
    WORDS,
    begun,
    choose_loss,
    collapse,
    done,
    slide,
    turn,
)
from patience import SLOW


@pytest.fixture
def app(filled_app: str) -> str:
    return filled_app


def test_all_lessons_by_keys_alone(app: str, page: Any) -> None:
    language = "zh"
    keys, words = page.keyboard, WORDS[language]

    def on(number: int) -> None:
        """The panel that comes is where the keys are, so that it is read out."""
        done(page, language).focus()
        page.evaluate(LEFT)
        keys.press("Enter")
        assert page.evaluate("seen"), "the press is answered at once"
        begun(page, number, language)
        page.wait_for_function(f"() => ({FOCUSED})().includes('lesson')")

    page.goto(f"{app}/loss_lab?lesson=1&lang={language}")
    begun(page, 1, language)
    page.locator(".bars").focus()
    keys.press("ArrowDown")
    keys.press("Enter")
    on(2)
    page.get_by_role("button", name=words["run"], exact=True).focus()
    keys.press("Enter")
    on(3)
    slide(page, "PageDown")
    assert words["third"] in page.locator(".lesson .said").inner_text()
    page.wait_for_url(re.compile(r"temperature=0\.[01]"))
    page.reload()  # what was done stays done
    done(page, language)
    on(4)
    slide(page, "PageUp")
    on(5)
    slide(page, "PageDown", until=GOAL)
    page.wait_for_url(re.compile(r"margin="), timeout=SLOW)  # the server has the slider's last value
    page.locator("[data-choice=loss-triplet]").focus()
    keys.press("Enter")
    page.locator(".goals").filter(has_text=TRIPLETS).wait_for(timeout=SLOW)
    slide(page, "PageUp")
    on(6)
    for choice in ("positives-classes", "form-in"):
        page.locator(f"[data-choice={choice}]").focus()
        keys.press("Enter")
        page.locator(f"[data-choice={choice}][aria-pressed=true]").wait_for(timeout=SLOW)
    on(7)

    def press(node: Any) -> None:
        node.focus()
        keys.press("Space")

    collapse(page, press, language)
    on(8)
    slide(page, "ArrowLeft", HALF, ".further input[type=range] >> nth=3")  # γ, not to 0: there is no hinge
    page.locator(".goals").filter(has_text=HALF).wait_for(timeout=SLOW)
    page.locator("[data-choice=loss-barlow_twins]").focus()
    keys.press("Enter")
    page.locator(".goals").filter(has_text=OFF).wait_for(timeout=SLOW)
    turn(page, 0, "PageUp")
    on(9)
    choose_loss(page, "hard_negative")
    slide(page, "PageUp", GOAL_OF[9], FURTHER)  # β
    choose_loss(page, "info_nce")
    page.get_by_role("checkbox").focus()
    keys.press("Space")
    slide(page, "PageDown", at=FURTHER)  # the margin
    on(10)
    slide(page, "PageDown", GOAL_OF[10])
    choose_loss(page, "siglip")
    slide(page, "ArrowRight", at=FURTHER)  # the bias
    done(page, language).focus()
    keys.press("Enter")
    page.wait_for_url(re.compile("/train"), timeout=SLOW)  # all are done: the next step is a training


def heading(page: Any) -> str:
    """What the bars show, whatever number of them fits."""
    return re.sub(r"nearest \d+", "nearest", page.locator(".barside h2").inner_text())


def test_a_wrong_bar_is_said_to_be_wrong(app: str, page: Any) -> None:
    """The question stays, nothing moves, and no color or name gives the answer away."""
    keys = page.keyboard
    page.goto(f"{app}/loss_lab?lesson=1")
    begun(page, 1)
    asked, said = heading(page), page.locator(".lesson .said")
    page.locator(".bars").focus()
    keys.press("ArrowDown")
    for name in ("image 10, view a", "image 10, view b", "image 23"):
        keys.press("ArrowDown")
        keys.press("Enter")
        said.filter(has_text=f"Not that one: it is {name}").wait_for(timeout=SLOW)
        assert heading(page) == asked
        assert not re.search("view b|positive", page.locator(".told .hint").inner_text())
        assert page.locator(".lesson.done").count() == 0
    for _ in range(3):
        keys.press("ArrowUp")
    keys.press("Enter")
    done(page)
    assert "+: positive" in page.locator(".barside").inner_text()
