"""The app as a newcomer meets it: look, drag, train, refresh in between, see the map change."""

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from patience import SLOW

from contrastive_core.base.storage import ROOT


@pytest.fixture(scope="module")
def app(serve: Callable[..., str]) -> str:
    return serve(ROOT / "app.py", is_new=True)


def test_dragging_the_temperature_changes_the_softmax_without_the_server(app: str, page: Any) -> None:
    sent: list[str] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda _: sent.append("frame")))
    page.goto(f"{app}/loss_lab?run=simclr-digits&loss=nt_xent&size=64")
    slider = page.locator(".lab input[type=range]").first
    slider.wait_for(timeout=SLOW)
    page.get_by_text(re.compile(r"\d of \d+")).first.wait_for(timeout=SLOW)
    effective = page.locator(".lab .effective").first
    seen = [effective.inner_text()]
    box = slider.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    page.wait_for_timeout(200)
    sent.clear()
    page.mouse.move(box["x"] + box["width"] / 5, middle[1], steps=20)
    page.wait_for_timeout(200)
    seen.append(effective.inner_text())
    assert sent == []  # the button is still down: nothing has gone to the server
    page.mouse.up()
    assert seen[0] != seen[1]
    first, second = (float(s.split(" of ")[0]) for s in seen)
    assert second < first  # a lower τ: fewer negatives matter
    page.wait_for_url(re.compile("temperature=0"), timeout=SLOW)  # let go: it is in the address


def test_train_two_epochs_refresh_in_between_and_see_the_map(app: str, page: Any) -> None:
    name = f"mine-{time.time_ns()}"  # a second try has another
    page.goto(f"{app}/train")
    page.get_by_label("Epochs").wait_for(timeout=SLOW)
    page.get_by_label("Epochs").fill("2")
    page.get_by_role("button", name="Temperature, batch").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Name", exact=True).press("Tab")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url(re.compile(f"watch={name}"), timeout=SLOW)
    page.reload()  # the run is in the address, its process goes on
    page.get_by_text(re.compile(r"done: epoch 2 of 2")).wait_for(timeout=2 * SLOW)
    epoch = page.locator(".map .epochs output")
    epoch.filter(has_text="epoch 2").wait_for(timeout=SLOW)
    shot = page.locator(".map .stage canvas").first.screenshot()
    page.get_by_label("epoch of the map").focus()
    page.keyboard.press("ArrowLeft")
    epoch.filter(has_text="epoch 1").wait_for(timeout=SLOW)
    page.wait_for_timeout(1000)  # the points have arrived
    assert page.locator(".map .stage canvas").first.screenshot() != shot
    page.get_by_role("button", name="Explore it").click()
    page.get_by_role("heading", name=name).wait_for(timeout=SLOW)
