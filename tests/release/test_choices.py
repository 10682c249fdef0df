"""The second choice counts as the first did in the live view; app/test_every_choice.py tries the widgets of pages."""

from typing import Any
from urllib.parse import unquote

from patience import PATIENCE
from visits import Visit

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
