"""The circle: its points do what the loss wants (unit/components/test_circle_gradients.py holds their gradients)."""

from typing import Any

import numpy as np
import pytest
from patience import repainted
from ring_page import FIND, ask, visit


@pytest.fixture(scope="module")
def address(script_pages: str) -> str:
    return f"{script_pages}/circle"


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
