"""The circle in a browser: its points do what the loss wants (unit/components/test_browser_losses.py holds their
gradients), the work of a frame, downloads, and two towers."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import finder, repainted

FIND = finder(".lab", "_ring")


@pytest.fixture(scope="module")
def address(script_pages: str) -> str:
    return f"{script_pages}/circle"


def visit(page: Any, address: str, **asked: Any) -> None:
    page.goto(f"{address}?" + "&".join(f"{k}={v}" for k, v in asked.items()))
    page.wait_for_function(f"() => ({FIND})()?.force")


def ask(page: Any, what: str) -> Any:
    return page.evaluate(f"() => {{ const ring = ({FIND})(); return {what}; }}")


def test_running_lowers_the_loss_and_pausing_stops(page: Any, address: str) -> None:
    for loss in ("nt_xent", "triplet"):
        visit(page, address, loss=loss)
        run_and_pause(page)


def run_and_pause(page: Any) -> None:
    start, alignment = ask(page, "ring.out.value"), ask(page, "ring.alignment")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_function(f"() => ({FIND})().step > 60")
    page.get_by_role("button", name="Pause").click()
    repainted(page)
    step = ask(page, "ring.step")
    assert ask(page, "ring.out.value") < start
    assert ask(page, "ring.alignment") < alignment
    page.wait_for_timeout(150)
    assert ask(page, "ring.step") == step
    page.get_by_role("button", name="Step", exact=True).click()
    repainted(page)
    assert ask(page, "ring.step") == step + 1
    assert "loss" in page.locator(".hint").first.inner_text()


def test_a_point_can_be_dragged_and_turned_by_keys(page: Any, address: str) -> None:
    visit(page, address)
    box = page.locator(".ring").bounding_box()
    before, (x, y) = ask(page, "Array.from(ring.force)"), ask(page, "ring.spots[0]")
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 5, steps=4)
    repainted(page)
    held = ask(page, "ring.held")
    assert ask(page, f"ring.angles[{held}]") == pytest.approx(np.pi / 2, abs=0.02)
    assert ask(page, "Array.from(ring.force)") != before
    page.mouse.up()
    page.locator(".ring").focus()
    page.keyboard.press("n")
    angle = ask(page, "ring.angles[0]")
    page.keyboard.press("ArrowLeft")
    assert ask(page, "ring.angles[0]") == pytest.approx(angle + 0.05)


def test_a_moving_point_can_be_dragged_and_the_others_wait(page: Any, address: str) -> None:
    visit(page, address)
    box = page.locator(".ring").bounding_box()
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_function(f"() => ({FIND})().step > 3")
    forces = ask(page, "Array.from(ring.force, Math.abs)")
    x, y = ask(page, f"ring.spots[{np.argmin(forces)}]")  # the others are elsewhere when the mouse comes
    page.mouse.move(box["x"] + x + 12, box["y"] + y + 12)  # as far beside it as a hand that follows it
    page.mouse.down()
    repainted(page)
    held, step = ask(page, "[ring.held, ring.step]")
    assert held >= 0
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 5, steps=4)
    repainted(page)
    assert ask(page, "[ring.step, ring.running]") == [step, True]
    assert ask(page, f"ring.angles[{held}]") == pytest.approx(np.pi / 2, abs=0.02)
    page.mouse.up()
    page.wait_for_function(f"() => ({FIND})().step > {step}")


def test_without_motion_a_run_shows_its_end_alone(page: Any, address: str) -> None:
    page.emulate_media(reduced_motion="reduce")
    visit(page, address)
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_function(f"() => ({FIND})().step >= 300")
    page.get_by_role("button", name="Run", exact=True).wait_for()
    assert ask(page, "ring.timings.length") <= 1


COUNT = """() => {
  window.counts = {math: 0, dom: 0};
  for (const name of ["sin", "cos", "exp", "log", "log1p"]) {
    const plain = Math[name];
    Math[name] = (x) => { window.counts.math++; return plain(x); };
  }
  const root = ring.root;
  new MutationObserver((all) => (window.counts.dom += all.length)).observe(
    root, {subtree: true, childList: true, characterData: true, attributes: true});
}"""


def test_the_work_of_a_frame_is_bounded(page: Any, address: str) -> None:
    """Two hundred points: one step a frame, a fixed number of operations a pair, and next to
    nothing to lay out. How long that takes is the machine's."""
    visit(page, address, n=200)
    ask(page, f"({COUNT})()")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_function(f"() => ({FIND})().step > 20")
    page.get_by_role("button", name="Pause").click()
    repainted(page)
    steps, frames = ask(page, "[ring.step, ring.timings.length]")
    assert steps == frames
    counts = page.evaluate("window.counts")
    assert 200**2 < counts["math"] / steps <= 16 * 200**2
    assert counts["dom"] <= 6 * (steps + 5)


def test_the_circle_can_be_taken_along(page: Any, address: str) -> None:
    visit(page, address, n=6, groups=2)
    page.get_by_role("button", name="Step", exact=True).click()
    repainted(page)
    with page.expect_download() as got:
        page.get_by_role("button", name="CSV").click()
    lines = Path(got.value.path()).read_text().splitlines()
    assert lines[0] == "point,group,angle,force,loss,tower"
    assert len(lines) == 1 + 6 + 2 + 1
    assert [row.split(",")[1::4] for row in lines[1:4]] == [["0", "0"], ["1", "0"], ["0", "0"]]  # group and tower
    forces = [float(row.split(",")[3]) for row in lines[1:7]]
    assert abs(sum(forces)) < 1e-6 * max(map(abs, forces))  # nothing turns the circle as a whole
    with page.expect_download() as got:
        page.get_by_role("button", name="PNG").click()
    assert Path(got.value.path()).read_bytes()[:4] == b"\x89PNG"


def test_two_towers_meet_and_the_report_names_them(page: Any, address: str) -> None:
    visit(page, address, n=12, loss="siglip")
    page.get_by_role("checkbox", name="two towers").check()
    page.get_by_text(re.compile("'towers': 1")).wait_for()
    assert ask(page, "[ring.n, ring.count, ring.M.filter((m) => m === 1).length]") == [12, 6, 12]
    assert "Gap between the towers" in page.locator(".hint").first.inner_text()
    assert page.get_by_text("discs and squares: the two towers").is_visible()
    page.get_by_role("checkbox", name="two towers").uncheck()
    page.get_by_text(re.compile("'towers': 0")).wait_for()
    assert ask(page, "ring.M.includes(0)") is False


def test_one_group_and_groups_of_one_say_why_nothing_moves(page: Any, address: str) -> None:
    visit(page, address, n=4, groups=4)
    assert "nothing moves" in page.locator(".hint").first.inner_text()
    visit(page, address, groups=1)
    assert "NaN" not in page.locator(".lab").inner_text()
