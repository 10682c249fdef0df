"""The ten lessons in the app, each answered by doing it: by keys alone, and with a finger."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from patience import SLOW

FOCUSED = """() => { let a = document.activeElement;
  while (a?.shadowRoot?.activeElement) a = a.shadowRoot.activeElement;
  return a.className; }"""


LEFT = """() => { window.seen = false;
  const deep = (root) => [...root.querySelectorAll("*")].flatMap((n) =>
    n.shadowRoot ? [n, ...deep(n.shadowRoot)] : [n]);
  for (const node of deep(document).filter((n) => n.matches?.(".forward")))
    node.addEventListener("click", () => {
      window.seen = node.closest(".lesson").matches(".leaving[aria-busy=true]");
    }); }"""  # after the button's own listener, before any answer


@pytest.fixture
def app(shared_app: str) -> str:
    return shared_app


WORDS = {  # what a lesson says
    "en": {
        "title": "Lesson {} of 10",
        "done": "Done.",
        "run": "Run",
        "third": "It is image 10, view a (square)",
        "predictor": "Predictor",
        "stopGradient": "Stop-gradient",
    },
    "zh": {
        "title": "第 {} 课，共 10 课",
        "done": "完成",
        "run": "运行",
        "third": "图像 10，视图 a（square）",
        "predictor": "预测器",
        "stopGradient": "停止梯度",
    },
}


def begun(page: Any, number: int, language: str = "en") -> None:
    """A lesson stands there, and is not done."""
    from playwright.sync_api import expect  # where it is missing, tests are skipped

    title = page.locator(".lesson h2")
    title.filter(has_text=WORDS[language]["title"].format(number)).wait_for(timeout=SLOW)
    expect(page.locator(".lesson")).to_have_count(1, timeout=SLOW)  # the one before has gone
    page.locator(".lesson .goals").filter(has_text=re.compile(r"\S")).wait_for(timeout=SLOW)
    assert page.locator(".lesson.done").count() == 0
    assert page.locator(".lesson .forward:visible").count() == 0
    assert page.locator(".lit").count() > 0


def done(page: Any, language: str = "en") -> Any:
    """It is done, says so to all, and offers the next; returns the button that leads on."""
    page.locator(".lesson.done").wait_for(timeout=SLOW)
    said = page.locator(".lesson [role=status]")
    assert said.get_attribute("aria-live") == "polite"
    assert said.inner_text().startswith(WORDS[language]["done"])
    assert page.locator(".lit").count() == 0
    return page.locator(".lesson .forward")


GOAL = re.compile(r"[：:] ?[123][。.]")  # of the pairs in the lesson on margins

GOAL_OF = {9: re.compile(r"[：:] ?(7[1-9]|[89]\d) %"), 10: re.compile(r"[：:] ?1\.00.*✓", re.S)}

FURTHER = ".further .knob input[type=range]"

TRIPLETS = re.compile(r"(Triplets: |三元组：)\d")  # their view is there


KNOBS = {"hard_negative": re.compile("^β"), "info_nce": re.compile("^m[,，]"), "siglip": re.compile("^b[,，]")}


def type_into(page: Any, knob: str, value: str) -> None:
    field = page.get_by_role("spinbutton", name=f"{knob}, as a number")
    field.fill(value)
    field.press("Enter")


def choose_loss(page: Any, loss: str, by_finger: bool = False) -> None:
    """With the lesson's button; the knob of the loss is there when the server has answered."""
    button = page.locator(f"[data-choice=loss-{loss}]")
    if by_finger:
        button.tap()
    else:
        button.focus()
        page.keyboard.press("Enter")
    page.locator(f"[data-choice=loss-{loss}][aria-pressed=true]").wait_for(timeout=SLOW)
    page.get_by_role("slider", name=KNOBS[loss]).wait_for(timeout=SLOW)


def slide(page: Any, key: str, until: re.Pattern[str] | None = None, at: str = ".knob input[type=range]") -> None:
    """With the slider's keys, until it is done, or until its first goal reads so."""
    page.locator(at).first.focus()
    for _ in range(60):
        page.keyboard.press(key)
        page.wait_for_timeout(50)
        if until.search(page.locator(".goals").inner_text()) if until else page.locator(".lesson.done").count():
            return
    raise AssertionError("the goal is not reached")


HALF = re.compile(r"(hinge: |的份额：)[0-4]?\d %")
OFF = re.compile(r"(diagonal: |非对角线的份额：)\d")


def turn(page: Any, knob: int, key: str) -> None:
    """One of the sliders of the lesson on dimensions, by a key."""
    page.locator(".further input[type=range]").nth(knob).focus()
    for _ in range(3):
        page.keyboard.press(key)


BELOW = re.compile(r"(.*[：:] ?0\.0\d+[。.]){%d}")  # spreads of so many settings in the lesson on collapse


def collapse(page: Any, press: Callable[[Any], None], language: str = "en") -> None:
    """Without stop-gradient, then without predictor, then with both, until the lesson is done."""
    words, goals = WORDS[language], page.locator(".lesson .goals")
    boxes = [page.get_by_role("checkbox", name=words[name], exact=True) for name in ("predictor", "stopGradient")]
    pace = page.get_by_role("slider").first
    pace.focus()
    page.keyboard.press("End")
    press(page.get_by_role("button", name=words["run"], exact=True))
    goals.filter(has_text=re.compile(BELOW.pattern % 1)).wait_for(timeout=SLOW)
    press(boxes[1])
    press(boxes[0])
    goals.filter(has_text=re.compile(BELOW.pattern % 2)).wait_for(timeout=SLOW)
    press(boxes[0])
    done(page, language)


@pytest.mark.parametrize("language", ["zh"])  # a finger goes through them in English
def test_all_lessons_by_keys_alone(app: str, page: Any, language: str) -> None:
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
    turn(page, 3, "PageDown")
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
    page.locator(".lesson:visible").wait_for(state="detached", timeout=SLOW)
    page.locator(".matrix:visible").first.wait_for(timeout=SLOW)
    assert "lesson=" not in page.url
    assert "loss=siglip" in page.url  # free play goes on from there


def test_a_wrong_bar_is_said_to_be_wrong(app: str, page: Any) -> None:
    """The question stays, nothing moves, and no color or name gives the answer away."""
    keys = page.keyboard
    page.goto(f"{app}/loss_lab?lesson=1")
    begun(page, 1)
    asked, said = page.locator(".barside h2").inner_text(), page.locator(".lesson .said")
    page.locator(".bars").focus()
    keys.press("ArrowDown")
    for name in ("image 10, view a", "image 10, view b", "image 23"):
        keys.press("ArrowDown")
        keys.press("Enter")
        said.filter(has_text=f"Not that one: it is {name}").wait_for(timeout=SLOW)
        assert page.locator(".barside h2").inner_text() == asked
        assert not re.search("view b|positive", page.locator(".told .hint").inner_text())
        assert page.locator(".lesson.done").count() == 0
    for _ in range(3):
        keys.press("ArrowUp")
    keys.press("Enter")
    done(page)
    assert "+: positive" in page.locator(".barside h2").inner_text()


def test_all_lessons_with_a_finger_from_the_front_page(app: str, browser: Any) -> None:
    context = browser.new_context(has_touch=True, viewport={"width": 390, "height": 844})
    context.set_default_timeout(SLOW)
    page = context.new_page()

    def touch(slider_at: float) -> None:
        slider = page.locator(".knob input[type=range]").first
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        slider.tap(position={"x": slider_at * box["width"], "y": box["height"] / 2})

    page.goto(app)
    page.get_by_role("link", name="See why temperature matters").tap()  # the first of two touches
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
    done(page).tap()
    begun(page, 4)
    touch(0.8)
    done(page).tap()
    begun(page, 5)
    touch(0.2)
    page.locator("[data-choice=loss-triplet]").tap()
    page.locator(".goals").filter(has_text=TRIPLETS).wait_for(timeout=SLOW)
    touch(0.2)
    done(page).tap()
    begun(page, 6)
    for choice in ("positives-classes", "form-in"):
        page.locator(f"[data-choice={choice}]").tap()
    done(page).tap()
    begun(page, 7)
    collapse(page, lambda node: node.tap())
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
