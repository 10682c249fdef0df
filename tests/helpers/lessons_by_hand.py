"""The lessons of the Loss Lab as a person goes through them in a browser."""

import re
from collections.abc import Callable
from typing import Any

from patience import SLOW

__all__ = ["FOCUSED", "FURTHER", "GOAL", "GOAL_OF", "HALF", "LEFT", "OFF", "TRIPLETS", "WORDS", "begun", "choose_loss"]
__all__ += ["collapse", "done", "slide", "turn", "type_into"]

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


WORDS = {  # what a lesson says
    "en": {
        "title": "Lesson {} of 10",
        "done": "Done.",
        "before": "You finished this lesson before.",
        "run": "Run",
        "third": "It is image 10, view a (square)",
        "predictor": "Predictor",
        "stopGradient": "Stop-gradient",
    },
    "zh": {
        "title": "第 {} 课，共 10 课",
        "done": "完成",
        "before": "这一课已完成。",
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
    finished = page.get_by_text(WORDS[language]["before"]).count()
    assert page.locator(".lesson .forward:visible").count() == finished
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
    for _ in range(120):
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


BELOW = re.compile(r"([\s\S]*[：:] ?0\.0\d+[。.]){%d}")  # spreads of so many settings in the lesson on collapse


def collapse(page: Any, press: Callable[[Any], None], language: str = "en") -> None:
    """Without stop-gradient, then without predictor, then with both, until the lesson is done."""
    words, goals = WORDS[language], page.locator(".lesson .goals")
    boxes = [page.get_by_role("checkbox", name=words[name], exact=True) for name in ("predictor", "stopGradient")]
    press(page.get_by_role("button", name=words["run"], exact=True))
    goals.filter(has_text=re.compile(BELOW.pattern % 1)).wait_for(timeout=SLOW)
    press(boxes[1])
    press(boxes[0])
    goals.filter(has_text=re.compile(BELOW.pattern % 2)).wait_for(timeout=SLOW)
    press(boxes[0])
    done(page, language)
