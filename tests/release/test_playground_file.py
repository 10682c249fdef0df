"""The playground's file without a server: it learns, its knobs are taken, and it asks for nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE

from contrastive_lab.desktop.command import main

STEPS = "(least) => document.getElementById('playground')._playground.state?.sides.every(({step}) => step >= least)"

EMPTY_MODULE = [0, 97, 115, 109, 1, 0, 0, 0]  # of WebAssembly, which the file's policy has to allow


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("playground") / "page.html"
    assert main(["playground", "--out", str(out)]) == 0
    return out


@pytest.fixture
def opened(file: Path, page: Any) -> Callable[[str], list[str]]:
    """Opens the file with an address's end; gives what it asks for besides itself."""

    def open_file(end: str) -> list[str]:
        asked: list[str] = []
        page.set_default_timeout(1000 * PATIENCE)
        page.emulate_media(reduced_motion="reduce")
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri() + end)
        page.get_by_text("Untrained, kNN is right on").wait_for()
        return asked

    return open_file


def learn(page: Any, steps: int) -> None:
    page.get_by_role("button", name="Learn").click()
    page.wait_for_function(STEPS, arg=steps)


def test_it_learns_while_a_temperature_is_dragged(page: Any, opened: Callable[[str], list[str]]) -> None:
    asked = opened("")
    learn(page, 1)
    assert page.workers[0].evaluate(f"() => Boolean(new WebAssembly.Module(new Uint8Array({EMPTY_MODULE})))")
    slider = page.get_by_role("slider", name="τ, temperature")
    slider.focus()
    slider.press("Home")
    page.get_by_text("At τ = 0.01 each sample is pushed by").wait_for()
    page.get_by_role("button", name="Twins").click()
    page.get_by_text("B: τ = 0.5").wait_for()
    page.wait_for_function(STEPS, arg=1)
    page.wait_for_function("() => location.hash.includes('0.01') && location.hash.split('loss').length === 3")
    page.get_by_role("button", name="Pause").click()
    page.reload()
    page.get_by_text("A: τ = 0.01").wait_for()
    page.get_by_role("button", name="中文").click()
    page.get_by_role("button", name="开始学习").wait_for()
    assert all(url.startswith(("file:", "blob:", "data:")) for url in asked)


FAILING = "window.Worker = class { set onerror(hear) { setTimeout(hear) } postMessage() {} terminate() {} }"


@pytest.mark.parametrize("without", ["delete window.Worker", FAILING])
def test_without_workers_it_learns_on_the_page(without: str, page: Any, opened: Callable[[str], list[str]]) -> None:
    page.add_init_script(without)
    opened("#" + "set=[0,{%22batch%22:16}]")
    learn(page, 3)


def test_in_a_hidden_tab_it_pauses(page: Any, opened: Callable[[str], list[str]]) -> None:
    opened("#set=[0,{%22batch%22:8}]")
    learn(page, 1)
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => true})")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.get_by_role("button", name="Learn").wait_for()


def test_an_absurd_rate_stops_at_the_last_good_weights(page: Any, opened: Callable[[str], list[str]]) -> None:
    opened("")
    page.evaluate("document.getElementById('playground')._playground.change({rate: 1e30, batch: 8})")
    page.get_by_role("button", name="Learn").click()
    page.get_by_text("The loss is no longer a number.").wait_for()
    page.get_by_role("button", name="Learn").wait_for()
