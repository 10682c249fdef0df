"""The front page as a newcomer meets it: the star moves, and each door leads to its goal."""

import re
from typing import Any

import pytest
from patience import SLOW, repainted, settled_box


@pytest.fixture
def app(filled_app: str) -> str:
    return filled_app


SAID = re.compile(r"At τ = ([\d.]+), one \w+ gets ((?:over )?\d+) % of the push")


def test_the_star_glides_until_it_is_touched(app: str, page: Any) -> None:
    page.goto(app)
    said = page.locator(".star .sentence")
    said.wait_for(timeout=SLOW)
    first = said.inner_text()
    page.wait_for_function("([e, first]) => e.innerText !== first", arg=[said.element_handle(), first], timeout=SLOW)
    slider = page.get_by_role("slider", name="τ, temperature")
    slider.focus()
    for key, low, high in (("Home", 90, 100), ("End", 1, 10)):  # the hardest alone, then all alike
        page.keyboard.press(key)
        settled = page.wait_for_function(SETTLED, arg=said.element_handle(), timeout=SLOW)
        share = float(SAID.search(settled.json_value()).group(2).removeprefix("over "))
        assert low <= share <= high
    field = page.get_by_label("τ, as a number")
    field.fill("")
    field.press("Enter")
    assert field.input_value() == "2"  # as before
    field.press("Control+a")
    page.keyboard.type("0,2")
    page.keyboard.press("Enter")
    said.filter(has_text="one cross gets 44 % of the push. It is another cross").wait_for(timeout=SLOW)
    page.locator(".star canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")  # its hardest negative becomes the anchor
    page.wait_for_function("e => !e.innerText.includes('44 %')", arg=said.element_handle(), timeout=SLOW)
    page.get_by_role("button", name="Lesson 1: Two views of an image").click()
    page.get_by_role("heading", name="Lesson 1 of 10").wait_for(timeout=SLOW)


SETTLED = """(e) => e.getAttribute("aria-busy") === "false" && e.innerText !== window.last
  && (window.last = e.innerText)"""


def test_it_rests_for_those_who_want_no_motion(app: str, browser: Any) -> None:
    page = browser.new_page(reduced_motion="reduce")
    page.goto(app)
    said = page.locator(".star .sentence")
    said.filter(has_text="At τ = 0.2").wait_for(timeout=SLOW)
    before = page.locator(".star canvas").screenshot()
    repainted(page)
    assert page.locator(".star canvas").screenshot() == before
    page.close()


def test_a_refresh_stays_at_the_front_page_and_an_old_address_leads_on(app: str, page: Any) -> None:
    page.goto(app)
    page.locator(".star .sentence").wait_for(timeout=SLOW)
    page.reload()
    page.locator(".star .sentence").wait_for(timeout=SLOW)
    page.goto(f"{app}/?run=sup_con-digits")
    page.get_by_role("heading", name="sup_con-digits").wait_for(timeout=SLOW)
    page.get_by_role("link", name="Home").click()
    page.locator(".star .sentence").wait_for(timeout=SLOW)


def test_each_door_is_one_click_from_its_goal(app: str, page: Any) -> None:
    page.goto(app)
    page.get_by_role("link", name="Train on my images").click()
    page.get_by_role("textbox", name="Folder").wait_for(timeout=SLOW)
    page.get_by_role("button", name="Start").wait_for(timeout=SLOW)
    page.goto(app)
    page.get_by_role("link", name="Find wrong labels").click()
    page.get_by_text("Likely mislabeled").first.wait_for(timeout=SLOW)
    page.goto(app)
    page.get_by_role("link", name="Watch it learn").click()
    page.get_by_text("Untrained, kNN is right on").wait_for(timeout=SLOW)
    page.goto(app)
    page.get_by_role("link", name="Learn how losses work").click()
    page.get_by_role("heading", name=re.compile(r"Lesson \d of 10")).wait_for(timeout=SLOW)


def test_a_card_leads_on_wherever_it_is_clicked(app: str, page: Any) -> None:
    page.goto(app)
    card = page.locator(".st-key-door-train")
    page.locator(".star .sentence").wait_for(timeout=SLOW)
    box = settled_box(page, card)
    card.click(position={"x": box["width"] - 12, "y": box["height"] - 12})
    page.get_by_role("textbox", name="Folder").wait_for(timeout=SLOW)


PLACES = """(canvas) => { let at = canvas;
  while (!at._star) at = at.parentNode ?? at.host;
  const { center, images } = at._star.scene;
  return [center, images.find((image) => !image.isPositive).now]; }"""  # of the anchor and of its nearest negative


def test_an_image_that_is_dragged_gets_what_its_distance_gives_and_springs_back(app: str, browser: Any) -> None:
    page = browser.new_page(reduced_motion="reduce")
    page.goto(app)
    said = page.locator(".star .sentence")
    said.filter(has_text="one cross gets 44 %").wait_for(timeout=SLOW)
    canvas = page.locator(".star canvas")
    (x, y), (dx, dy) = canvas.evaluate(PLACES)
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + x + dx, box["y"] + y + dy)
    page.mouse.down()
    page.mouse.move(box["x"] + x + 2.2 * dx, box["y"] + y + 2.2 * dy, steps=4)
    said.filter(has_not_text="44 %").wait_for(timeout=SLOW)  # farther away it gets less
    page.mouse.up()
    said.filter(has_text="one cross gets 44 %").wait_for(timeout=SLOW)
    page.get_by_text("It springs back").wait_for(timeout=SLOW)
    page.close()


DROP = """(dropzone) => { const data = new DataTransfer();
  data.items.add(new File([Array.from({ length: 30 }, (_, i) => `${i},${i % 3},1`).join("\\n")], "points.csv"));
  const tell = (target, name) => target.dispatchEvent(new DragEvent(name, { dataTransfer: data, bubbles: true }));
  tell(document.body, "dragenter");
  const isShown = getComputedStyle(dropzone).visibility === "visible";
  tell(dropzone, "drop");
  return isShown; }"""


def test_a_file_that_is_dropped_anywhere_opens_in_explore(app: str, page: Any) -> None:
    page.goto(app)
    page.locator(".star .sentence").wait_for(timeout=SLOW)
    dropzone = page.locator(".st-key-drop-target [data-testid=stFileUploaderDropzone]")
    dropzone.wait_for(state="attached", timeout=SLOW)
    assert dropzone.evaluate("e => getComputedStyle(e).visibility") == "hidden"
    broken: Any = {"name": "a.npz", "mimeType": "", "buffer": b"no archive"}
    page.locator(".st-key-drop-target input[type=file]").set_input_files(broken)
    page.get_by_test_id("stToast").filter(has_text="a.npz is damaged").wait_for(timeout=SLOW)
    assert dropzone.evaluate(DROP)
    page.wait_for_url(re.compile(r"/explore\?.*vectors="), timeout=SLOW)
