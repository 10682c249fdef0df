"""The live view in a browser: its panels, their figures and words, touch, addresses and downloads."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
from live_page import FIND, ask, set_slider, visit
from patience import SLOW, repainted


@pytest.fixture(scope="module")
def address(script_pages: str) -> str:
    return f"{script_pages}/live"


@pytest.mark.parametrize("kind", ["softmax", "pair", "triplet"])
def test_every_panel_draws_and_follows_the_knob(page: Any, address: str, kind: str) -> None:
    visit(page, address, kind)
    page.get_by_role("button", name="Pin as A").click()
    page.locator("button[data-key=curves]").click()
    for panel in ("of-scores", "of-grads", "of-curves", "of-formula", "panel:has(table)"):
        seen = []
        for position in (400, 700):
            set_slider(page, position)
            drawn = page.locator(f".{panel} canvas").evaluate("c => c.toDataURL()")
            seen.append(drawn + page.locator(f".{panel}").inner_text())
        assert seen[0] != seen[1] or (kind == "softmax" and panel == "of-scores"), panel
        assert page.locator(f".{panel} .hint").inner_text()
    page.locator("button[data-key=matrix]").click()
    for view in ("score", "grad", "mask", "weight"):
        page.locator(f"button[data-key={view}]").click()
    page.locator("button[data-key=cluster]").click()
    repainted(page)
    assert sorted(ask(page, "lab.rows")) == list(range(64))


def test_the_margin_line_answers_to_a_finger(browser: Any, address: str) -> None:
    context = browser.new_context(has_touch=True, viewport={"width": 900, "height": 1400})
    context.set_default_timeout(SLOW)
    page = context.new_page()
    visit(page, address, "pair", more="&stage=curves")
    line = page.locator("canvas.scores")
    line.scroll_into_view_if_needed()
    line.tap(position={"x": 0.8 * line.bounding_box()["width"], "y": 60})
    page.wait_for_function(f"() => ({FIND})().value > 1")
    page.get_by_text("runs 2").wait_for()
    context.close()


def test_the_matrix_and_the_bars_answer_to_a_finger(browser: Any, address: str) -> None:
    context = browser.new_context(has_touch=True, viewport={"width": 900, "height": 1400})
    context.set_default_timeout(SLOW)
    page = context.new_page()
    visit(page, address)
    at = page.locator(".matrix").bounding_box()["width"]
    page.locator(".matrix").tap(position={"x": 0.9 * at, "y": 0.5 * at})
    page.wait_for_function(f"() => ({FIND})().anchor > 20")
    row, column = ask(page, "lab.hover")  # what was touched stays lit
    assert row == ask(page, "lab.anchor")
    page.get_by_text(f"anchor {row}").wait_for()
    assert f"row {column}" in page.locator(".told .hint").inner_text()
    first = ask(page, "lab.barRows[0]")
    page.get_by_role("button", name="farther").tap()
    page.wait_for_function(f"() => ({FIND})().barRows[0] !== {first}")
    page.locator(".bars").tap(position={"x": 60, "y": 11})
    page.wait_for_function(f"() => ({FIND})().anchor !== {row}")  # it is an anchor, too
    context.close()


def test_two_settings_differ_as_the_formula_says(page: Any, address: str) -> None:
    visit(page, address)
    page.get_by_role("button", name="Pin as A").click()
    repainted(page)
    assert ask(page, "lab.two.value") == ask(page, "lab.value")
    page.locator(".panel select").select_option("out")  # what it is already
    repainted(page)
    assert "the same gradient" in page.locator(".panel:has(table) .hint").inner_text()
    page.locator(".panel select").select_option("in")
    repainted(page)
    assert ask(page, "lab.two.out.value <= lab.out.value + 1e-9")  # Jensen
    assert "but not the same gradient" in page.locator(".panel:has(table) .hint").inner_text()
    page.locator(".panel input").first.evaluate("e => { e.value = 200; e.dispatchEvent(new Event('input')); }")
    repainted(page)
    assert "weigh more now" in page.locator(".panel:has(table) .hint").inner_text()


def test_a_second_loss_comes_from_the_server_and_is_then_live(page: Any, address: str) -> None:
    visit(page, address, more="&second=same")
    select = page.locator(".panel select")
    select.select_option("loss:pair")
    page.wait_for_function(f"() => ({FIND})().two.out")
    rows = [row.split() for row in page.locator(".panel tr").all_inner_texts()]
    assert rows[0] == "now, τ 0.500 A, ε 0.500 difference".split()
    before = ask(page, "lab.two.out.value")
    page.locator(".panel input").first.evaluate("e => { e.value = 900; e.dispatchEvent(new Event('input')); }")
    repainted(page)
    assert ask(page, "lab.two.out.value") > before
    select.select_option("loss:server")
    page.wait_for_function(f"() => ({FIND})().two.out?.value === 1.5")
    select.select_option("loss:refused")
    page.get_by_text("It needs labels.").wait_for()


def test_the_formula_adds_up(page: Any, address: str) -> None:
    """The numbers put into the formula give the loss, at a τ where e^(s/τ) is large too."""
    visit(page, address, more="&stage=curves")
    for position in (0, 500):
        set_slider(page, position)
        lines = page.locator(".worked > div").all_inner_texts()
        loss = ask(page, "lab.out.loss[lab.anchor]")
        told = [float(t.split()[-1].split("=")[-1]) for t in lines[:-1]]
        assert math.isclose(told[-1], loss, rel_tol=0.01)
        assert math.isclose(sum(told[1:-1]) / 3, loss, rel_tol=0.01)
        assert "NaN" not in "".join(lines)
        assert page.locator(".worked").evaluate("e => e.scrollWidth <= e.clientWidth")  # terms wrap


def test_pull_is_blue_for_similarities_and_for_distances(page: Any, address: str) -> None:
    for kind in ("softmax", "pair"):
        visit(page, address, kind, more="&view=grad")
        red, _, blue, _ = ask(page, "Array.from(lab.image.data.slice(4, 8))")  # rows 0 and 1
        assert blue > red, kind


def test_a_low_temperature_is_explained(page: Any, address: str) -> None:
    visit(page, address)
    set_slider(page, 0)
    least = ask(page, "lab.out.effective.indexOf(Math.min(...lab.out.effective))")
    visit(page, address, more=f"&stage=curves&anchor={least}")
    words = page.locator(".of-curves .hint").inner_text()
    tau = float(re.search(r"Below τ = ([\d.]+)", words).group(1))
    assert "does not change which negatives matter" in words
    set_slider(page, round(1000 * math.log(tau / 0.01) / math.log(1000)))
    assert 1 <= ask(page, "lab.out.effective[lab.anchor]") < 1.15


def test_degenerate_batches_say_why(page: Any, address: str) -> None:
    visit(page, address, "lonely")
    page.get_by_text("No anchor has a positive").wait_for()
    assert page.locator(".loss").inner_text() == "undefined"
    visit(page, address, "one group", 16)
    assert page.locator(".effective").inner_text() == "none"
    visit(page, address, "server", 16)
    assert page.locator(".loss").inner_text() == "1.50"
    assert "NaN" not in page.locator(".lab").inner_text()


def test_downloads(page: Any, address: str) -> None:
    visit(page, address, n=16)
    with page.expect_download() as got:
        page.get_by_role("button", name="CSV").click()
    lines = Path(got.value.path()).read_text().splitlines()
    assert lines[0].startswith("anchor,candidate,relation,score,weight,gradient,anchor_loss,")
    assert len(lines) == 1 + 16 * 16
    with page.expect_download() as got:
        page.get_by_role("button", name="PNG").click()
    assert Path(got.value.path()).read_bytes()[:4] == b"\x89PNG"
