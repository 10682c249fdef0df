"""Pages on a phone: tables with whole words, maps that fill their stage, lessons beside theirs."""

import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any

import pytest
from map_page import FIND as MAP
from patience import SLOW, settled_box

WIDTH = 390
# Words of an element that stand on two lines, or out of the screen.
BROKEN = """table => {
  const found = [], texts = document.createTreeWalker(table, NodeFilter.SHOW_TEXT);
  for (let node; (node = texts.nextNode()); )
    for (const { 0: word, index } of node.data.matchAll(/[A-Za-z]{2,}/g)) {
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const boxes = [...range.getClientRects()];
      if (boxes.length > 1 || boxes.some((b) => b.right > innerWidth)) found.push(word);
    }
  return found;
}"""


# What stands before the first cell behind the head of the first row; false while it is "none".
SAID = """() => {
  const cell = document.querySelectorAll("[data-testid=stMain] table td")[1];
  const said = cell && getComputedStyle(cell, "::before").content;
  return said !== "none" && said;
}"""


@pytest.fixture
def app(filled_app: str) -> str:
    return filled_app


@pytest.fixture
def phone(page: Any) -> Iterator[Any]:
    page.set_viewport_size({"width": WIDTH, "height": 844})
    return page


def test_no_word_of_a_methods_tables_is_broken(app: str, phone: Any) -> None:
    phone.goto(f"{app}/methods?method=simclr")
    tables = phone.locator("[data-testid=stMain] table")
    tables.first.wait_for(timeout=SLOW)
    phone.wait_for_function(SAID, timeout=SLOW)  # Streamlit fetches what draws styles late
    assert phone.evaluate(SAID) == '"value"'  # a cell says its column
    for table in tables.all():
        assert not table.evaluate(BROKEN)
    names = phone.locator(".family")
    names.locator("a").first.wait_for(timeout=SLOW)
    assert not names.evaluate(BROKEN)
    picker = phone.locator(".st-key-toolbar input[role=combobox]")
    assert picker.evaluate("e => [e.value, e.scrollWidth <= e.clientWidth]") == ["SimCLR · 2020", True]


# Buttons in sight that the toolbar of a table or a chart covers.
COVERED = """() => [...document.querySelectorAll("[data-testid=stMain] button")].filter((button) => {
  const { left, top, width, height } = button.getBoundingClientRect(), x = left + width / 2, y = top + height / 2;
  if (!width || x < 0 || y < 0 || x > innerWidth || y > innerHeight || button.closest("[data-testid=stElementToolbar]"))
    return false;
  const over = document.elementFromPoint(x, y)?.closest("[data-testid=stElementToolbar], .modebar");
  return Boolean(over) && !over.contains(button);
}).map((button) => button.textContent)"""


@pytest.mark.parametrize("width", [390, 1440])
def test_toolbars_of_a_table_and_a_chart_cover_no_button(app: str, page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{app}/runs")
    page.locator("[data-testid=stDataFrame]").first.hover(timeout=SLOW)
    assert not page.locator("[data-testid=stElementToolbar]:visible").count()  # the page's own has all that it does
    page.goto(f"{app}/explore?run=simclr-digits")
    page.get_by_text("kNN over k").first.click(timeout=SLOW)
    page.locator(".js-plotly-plot").first.hover(timeout=SLOW)
    page.wait_for_timeout(500)  # in which one would come
    assert not page.locator(".modebar-btn:visible").count()
    assert page.evaluate(COVERED) == []


def test_the_trainings_map_has_its_tools_apart_and_a_way_to_a_new_run(app: str, phone: Any) -> None:
    phone.goto(f"{app}/train?watch=simclr-shapes")
    phone.locator(".map .epochs button").wait_for(timeout=SLOW)
    parts = [phone.locator(f".map {part}") for part in (".rail", ".zoom", ".epochs", "[role=status]")]
    phone.wait_for_function("() => document.querySelector('.st-key-toolbar').offsetHeight === 48", timeout=SLOW)
    boxes = [part.bounding_box() for part in parts]
    for a, b in combinations(boxes, 2):
        assert any(
            x[side] + x[size] <= y[side]
            for side, size in (("x", "width"), ("y", "height"))
            for x, y in ((a, b), (b, a))
        )
    button = phone.get_by_role("button", name="New run").bounding_box()
    assert button["x"] + button["width"] <= WIDTH


# Buttons and fields of a toolbar that stick out of the screen.
CUT = """() => [...document.querySelectorAll(".st-key-toolbar :is(button, input, summary)")].filter((e) => {
  const { left, right, width } = e.getBoundingClientRect();
  return width > 1 && (left < 0 || right > innerWidth);
}).map((e) => e.ariaLabel || e.textContent)"""


@pytest.mark.parametrize("name", ["Explore", "Loss Lab", "Compare", "Samples", "Train", "Runs", "Methods"])
def test_a_toolbar_is_cut_off_nowhere_and_the_page_says_its_name(app: str, phone: Any, name: str) -> None:
    phone.goto(f"{app}/{name.lower().replace(' ', '_')}")
    phone.locator(".st-key-toolbar .options").wait_for(state="attached", timeout=SLOW)
    phone.wait_for_function("() => document.querySelector('.st-key-toolbar').offsetHeight === 48", timeout=SLOW)
    assert phone.locator(".page-name").inner_text() == name
    assert phone.evaluate(CUT) == []
    if name == "Compare":
        assert all(phone.locator(f".st-key-compare-{side}").is_visible() for side in "AB")
    if (options := phone.locator(".options summary")).is_visible():
        options.click()
        assert phone.evaluate(CUT) == []
        assert phone.locator(".st-key-toolbar").bounding_box()["height"] > 48


def test_home_says_what_the_app_is_for_above_its_star(app: str, phone: Any) -> None:
    phone.goto(app)
    phone.locator(".star .sentence").filter(has_text="of the push").wait_for(timeout=SLOW)
    parts = (phone.locator(".star .about p"), phone.locator(".star canvas"), phone.get_by_role("button", name="Lesson"))
    boxes = [part.bounding_box() for part in parts]
    assert all(a["y"] + a["height"] <= b["y"] for a, b in pairwise(boxes))
    assert boxes[-1]["y"] + boxes[-1]["height"] < 844


def test_the_loss_lab_says_its_loss_and_its_answer_above_the_star(app: str, phone: Any) -> None:
    phone.goto(f"{app}/loss_lab?run=simclr-shapes")
    phone.get_by_text(re.compile(r"NT-Xent: loss of the batch \d")).wait_for(timeout=SLOW)
    answer, star, knob = (phone.locator(f".lab {part}") for part in (".sentence", ".starry", ".held > .knob"))
    boxes = [part.bounding_box() for part in (answer, star, knob)]
    assert all(a["y"] + a["height"] <= b["y"] for a, b in pairwise(boxes))
    assert boxes[1]["height"] >= 0.6 * 844 - 1
    assert boxes[-1]["y"] + boxes[-1]["height"] < 844


def test_start_is_in_sight_before_the_form_is_scrolled(app: str, phone: Any) -> None:
    phone.goto(f"{app}/train?method=simclr&data=digits")
    start, epochs = phone.get_by_role("button", name="Start"), phone.locator("input[aria-label=Epochs]")
    start.wait_for(timeout=SLOW)
    phone.locator(".views").wait_for(timeout=SLOW)
    box = settled_box(phone, start)
    assert epochs.evaluate(ON_TOP)
    assert box["y"] + box["height"] < 844
    assert start.evaluate(ON_TOP)


# Whether an element's middle is covered by nothing.
ON_TOP = """(e) => { const b = e.getBoundingClientRect();
  return e.contains(document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2)); }"""


@pytest.mark.parametrize("runs", [2, 3])
def test_compares_maps_stand_below_each_other_and_fill_their_stage(app: str, phone: Any, runs: int) -> None:
    names = ["simclr-digits", "sup_con-digits", "moco_v1-digits"][:runs]
    phone.goto(f"{app}/compare?runs={','.join(names)}")
    phone.wait_for_function(f"() => ({MAP})()?.meta.panels.lines === {runs}", timeout=SLOW)
    stage = phone.locator(".map .stage").bounding_box()
    assert stage["width"] == phone.viewport_size["width"]
    assert stage["height"] >= 0.6 * phone.viewport_size["height"] - 1


def test_a_lesson_has_its_bars_right_below_it(app: str, phone: Any) -> None:
    """What a lesson asks about comes below what is held; what it does not need is hidden."""
    phone.goto(f"{app}/loss_lab?lesson=1")
    phone.locator(".lab .bars").wait_for(timeout=SLOW)
    for part in (".matrix", ".figures"):
        phone.locator(f".lab {part}").first.wait_for(state="hidden", timeout=SLOW)
    tops = [phone.locator(f".lab {part}").first.bounding_box()["y"] for part in (".lesson", ".held", ".bars")]
    assert tops == sorted(tops)


@pytest.mark.parametrize("number", [3, 4, 5])
def test_a_lesson_has_its_task_picture_and_slider_on_one_screen(app: str, phone: Any, number: int) -> None:
    phone.goto(f"{app}/loss_lab?lesson={number}")
    star, knob = phone.locator(".lab .starry"), phone.locator(".lab .held .knob.lit")
    knob.wait_for(timeout=SLOW)
    assert star.bounding_box()["height"] > 280
    assert phone.get_by_role("button", name="Leave").is_visible()
    box = knob.bounding_box()
    assert box["y"] + box["height"] < 844


def test_a_lesson_of_bars_alone_has_no_empty_picture(app: str, phone: Any) -> None:
    phone.goto(f"{app}/loss_lab?lesson=10")
    bars = phone.locator(".lab .bars")
    bars.wait_for(timeout=SLOW)
    below = phone.locator(".lab .lesson").bounding_box()
    assert bars.bounding_box()["y"] - below["y"] - below["height"] < 200


def test_a_lesson_on_the_circle_has_its_buttons_and_the_circle_on_one_screen(app: str, phone: Any) -> None:
    phone.goto(f"{app}/loss_lab?lesson=2")
    ring, run = phone.locator(".lab .ring"), phone.get_by_role("button", name="Run", exact=True)
    ring.wait_for(timeout=SLOW)
    box, pressed = ring.bounding_box(), run.bounding_box()
    assert pressed["y"] + pressed["height"] < 844
    assert 0 < box["y"] + box["height"] - pressed["y"] < 844 - 60  # below the bar at the top


def test_controls_of_the_map_fit_and_a_disabled_button_is_read_in_the_dark(app: str, browser: Any) -> None:
    context = browser.new_context(color_scheme="dark", viewport={"width": WIDTH, "height": 844})
    page = context.new_page()
    page.goto(f"{app}/explore?run=simclr-digits")
    bar = page.locator(".st-key-toolbar")
    bar.wait_for(timeout=SLOW)
    is_one_line = "() => document.querySelector('.st-key-toolbar').offsetHeight === 48"
    page.wait_for_function(is_one_line, timeout=SLOW)  # once its styles are there
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    page.locator(".map .stage").wait_for(timeout=SLOW)
    assert page.locator(".map .stage").bounding_box()["height"] >= 0.6 * 844 - 1
    opener = page.get_by_role("button", name="Open my embeddings")
    assert not opener.is_visible()  # until the options are opened
    page.locator(".options summary").click()
    opener.click(timeout=SLOW)
    button = page.get_by_role("button", name="Look at it")
    button.wait_for(timeout=SLOW)
    assert button.is_disabled()
    color = button.locator("p").evaluate("e => getComputedStyle(e).color")
    assert int(color.split("(")[1].split(",")[0]) > 150, color  # light, on the dark page
    context.close()


def test_the_flow_of_a_method_is_drawn_in_chinese(app: str, page: Any) -> None:
    """From left to right where there is room, else downwards; no label of it is English."""
    page.goto(f"{app}/methods?method=moco_v2&lang=zh")
    for width, is_wide in ((1440, True), (1024, False), (390, False)):
        page.set_viewport_size({"width": width, "height": 900})
        flow = page.locator(".flow")
        flow.wait_for(timeout=SLOW)
        page.wait_for_function(
            """([e, width, isWide]) => {
            const [first, ...boxes] = [...e.querySelectorAll(".box")].map((b) => b.getBoundingClientRect());
            const last = boxes.at(-1), isRight = last.left >= first.right, isBelow = last.top >= first.bottom;
            return e.getBoundingClientRect().right <= width && (isWide ? isRight : isBelow && !isRight); }""",
            arg=[flow.element_handle(), width, is_wide],
        )
        labels = flow.inner_text()
        assert "旧键队列" in labels
        assert not re.search(r"\b(encoder|head|queue|gradient|view)\b", labels), labels
