"""The address: one entry in the browser's history for a page, one for a choice; and what a page gives away as PDF."""

import re
from pathlib import Path
from typing import Any

from choices import IDLE
from patience import SLOW


def heading(page: Any, name: str) -> None:
    page.get_by_role("heading", name=name, exact=True).first.wait_for(timeout=SLOW)


def at_home(page: Any) -> None:
    page.get_by_role("link", name="Train on my images").wait_for(timeout=SLOW)


def go_back(page: Any) -> None:
    """Press Back on a page that rests; one that is still drawn writes its own address again."""
    page.wait_for_function(IDLE, timeout=SLOW)
    page.go_back()


def test_back_leads_to_the_page_or_the_choice_before(filled_app: str, page: Any) -> None:
    page.goto(filled_app)
    at_home(page)
    page.get_by_role("link", name="Methods").click()
    heading(page, "Methods")
    page.wait_for_url(re.compile("methods.*method="), timeout=SLOW)
    first = re.search("method=([^&]+)", page.url)
    page.get_by_role("link", name="Runs", exact=True).click()
    heading(page, "Runs")
    page.wait_for_url(re.compile("runs.*view=runs"), timeout=SLOW)
    page.get_by_role("button", name="Sweeps…").click()
    page.wait_for_url(re.compile("view=sweeps"), timeout=SLOW)
    page.get_by_role("dialog").wait_for(timeout=SLOW)
    go_back(page)
    page.wait_for_url(re.compile("view=runs"), timeout=SLOW)
    page.get_by_role("dialog").wait_for(state="hidden", timeout=SLOW)
    go_back(page)
    heading(page, "Methods")
    assert first is not None
    assert f"method={first[1]}" in page.url
    go_back(page)
    at_home(page)
    page.go_forward()
    heading(page, "Methods")


def test_a_map_is_saved_as_pdf(filled_app: str, page: Any) -> None:
    held: list[Any] = []
    page.route(re.compile("scatter/main.js"), lambda route: held.append(route))  # the map comes after the click
    page.goto(f"{filled_app}/explore?run=sup_con-digits")
    page.get_by_text("kNN accuracy").first.wait_for(timeout=2 * SLOW)  # all else has come: a popover stays open
    page.get_by_role("button", name="Export").click(timeout=SLOW)
    page.get_by_label("Width, mm").fill("120")
    with page.expect_download(timeout=SLOW) as got:
        page.get_by_role("button", name="PDF", exact=True).click()
        held[0].continue_()
    content = Path(got.value.path()).read_bytes()
    box = re.search(rb"/MediaBox ?\[0 0 ([\d.]+)", content)
    assert box is not None
    assert abs(float(box[1]) / 72 * 25.4 - 120) < 0.01
    assert b"FontFile" in content
