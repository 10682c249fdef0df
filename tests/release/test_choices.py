"""The second choice counts as the first did, with what only a selection or the live view offers; test_every_page.py
tries the widgets that pages begin with."""

from typing import Any
from urllib.parse import unquote

from choices import CHOICES, shown
from patience import PATIENCE
from visits import Visit


def test_each_of_some_selected_samples_can_be_looked_at(filled_app: str, page: Any) -> None:
    """What stands on Explore only while samples are selected on its map."""
    visit = Visit(page)
    visit.open(f"{filled_app}/explore?run=simclr-digits&map=pca")
    page.get_by_role("button", name="box", exact=True).click()
    box = page.locator(".map .stage canvas").first.bounding_box()
    asked = visit.answers.asked
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + box["height"] - 5, steps=4)
    page.mouse.up()
    visit.answers.wait(asked + 1)
    name = next(n for n in shown(page) if "Neighbors of" in n)
    visit.try_out(name)
    assert visit.tried[name] == CHOICES


PARTS = (  # of the live view, and choices in them; what is pinned as A has a list of its own
    ("view", ("grad", "mask", "score")),
    ("order", ("cluster", "group", "cluster")),
)


def test_choices_within_the_live_view_count(filled_app: str, page: Any) -> None:
    visit = Visit(page)
    visit.open(f"{filled_app}/loss_lab?run=simclr-digits&on=matrix&size=32&loss=nt_xent")
    page.locator(".matrix:visible").wait_for(timeout=1000 * PATIENCE)
    for part, keys in PARTS:
        for key in keys:
            asked = visit.answers.asked
            page.locator(f"button[data-key={key}]").click()
            visit.answers.wait(asked + 1)
            button = page.locator(f"button[data-key={key}]")
            assert button.get_attribute("aria-pressed") == "true", key
            assert part != "view" or f"view={key}" in page.url
            assert part != "order" or ("arrange=cluster" in page.url) == (key == "cluster")
    page.get_by_role("button", name="Pin as A").click()
    listed = page.locator(".panel select")
    listed.wait_for(timeout=1000 * PATIENCE)
    options = listed.locator("option").evaluate_all("all => all.map((o) => o.value)")
    for option in [o for o in options if o != listed.input_value()][:: len(options) // 4][:3]:
        asked = visit.answers.asked
        listed.select_option(option)
        visit.answers.wait(asked + 1)
        assert listed.input_value() == option
        assert f"second={option}" in unquote(page.url)
    for stage, drawn in (("Curves", "canvas.curves"), ("Matrix", ".matrix"), ("Curves", "canvas.curves")):
        asked = visit.answers.asked
        page.get_by_role("radio", name=stage, exact=True).click()
        visit.answers.wait(asked + 1)
        page.locator(f"{drawn}:visible").wait_for(timeout=1000 * PATIENCE)
        assert f"on={stage.lower()}" in page.url
