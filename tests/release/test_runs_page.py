"""Runs in a real browser: closed, refreshed, opened twice, and its server killed in between."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision.models as models
from patience import PATIENCE, SLOW
from PIL import Image
from servers import Server
from visits import SWEEP

from benchmarks import browser as real
from contrastive_core import runs
from contrastive_core.base import json_files, storage
from contrastive_core.base.lock import lock_holder
from contrastive_core.engine import process, queue, training
from contrastive_lab.runs.table import HEAD, ROW


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, prepared: Path) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("lab"))
    shutil.copytree(prepared, found.home / "home")
    found.start()
    yield found
    found.end()


@pytest.fixture
def home(server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process sees the server's runs. Each test, a second try too, begins without one, and nothing runs."""
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(server.home / "runs"))
    monkeypatch.setenv("CONTRASTIVE_LAB_HOME", str(server.home / "home"))
    for job in queue.queue():
        queue.remove(job.name)
    for run in training.working():
        if holder := lock_holder(run.path / "lock"):
            os.kill(holder, signal.SIGKILL)
    real.end_tasks()
    wait(lambda: not training.working())
    for path in (server.home / "runs").glob("[!.]*"):
        shutil.rmtree(path)
        training.job_of(path.name).forget()
    if server.process.poll() is not None:
        server.start()
    return server.home / "runs"


def wait(what: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    last = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < last, "took too long"
        time.sleep(0.1)
    return found


def tab(browser: Any, **settings: Any) -> Any:
    """A page of a session of its own."""
    page = browser.new_page(**settings)
    page.set_default_timeout(SLOW)
    return page


def start(page: Any, address: str, name: str, epochs: int) -> None:
    fill_in(page, address, name, epochs)
    page.get_by_role("button", name="Start", exact=True).click()


def fill_in(page: Any, address: str, name: str, epochs: int) -> None:
    page.goto(f"{address}/train?method=simclr")
    page.get_by_label("Epochs").fill(str(epochs), timeout=SLOW)
    page.get_by_role("button", name="Temperature, batch").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Name", exact=True).press("Tab")
    page.keyboard.press("Escape")


def mine() -> dict[str, str]:
    return {r.name: r.status()["status"] for r in runs.list_runs() if not r.shipped}


def test_nothing_is_lost_doubled_or_orphaned(server: Server, home: Path, browser: Any) -> None:
    one = tab(browser)
    start(one, server.address, "first", 400)
    wait(lambda: mine().get("first") == "running" and len(runs.load("first").metrics()) > 20)
    pid = lock_holder(home / "first" / "lock") or os.getpid()
    os.kill(pid, signal.SIGSTOP)  # it is at work as before, and leaves the processors to the pages
    start(one, server.address, "second", 1)
    one.get_by_text("second is waiting for").wait_for(timeout=SLOW)
    two = tab(browser)
    start(two, server.address, "third", 1)
    two.get_by_text("third is waiting for").wait_for(timeout=SLOW)
    fill_in(two, server.address, "second", 1)  # opened twice: the same name again
    two.get_by_text("there is a run 'second' already").wait_for(timeout=SLOW)
    two.locator(".st-key-start button:disabled:visible").wait_for(timeout=SLOW)
    one.reload()
    one.get_by_text("second is waiting for").wait_for(timeout=SLOW)

    one.close()
    two.close()
    server.kill()
    before = len(runs.load("first").metrics())
    assert [job.name for job in queue.queue()] == ["second", "third"]
    os.kill(pid, signal.SIGCONT)
    wait(lambda: len(runs.load("first").metrics()) > before)  # it trains on without the app
    os.kill(pid, signal.SIGSTOP)
    server.start()
    assert lock_holder(home / "first" / "lock") == pid  # and is still the only one

    three = tab(browser)
    three.goto(f"{server.address}/runs")
    three.get_by_text(re.compile(r"first: epoch \d+ of 400")).wait_for(timeout=SLOW)
    three.get_by_text("1. second: waiting for").wait_for(timeout=SLOW)
    three.get_by_text("2. third: waiting for").wait_for(timeout=SLOW)
    three.close()
    os.kill(pid, signal.SIGKILL)  # the training itself dies
    wait(lambda: mine() == {"first": "failed", "second": "done", "third": "done"})  # no page open
    assert queue.queue() == []

    four = tab(browser)
    four.goto(f"{server.address}/train?watch=first")
    four.get_by_text("its process ended unexpectedly").first.wait_for(timeout=SLOW)
    step = runs.load("first").status()["step"]
    four.get_by_role("button", name="Resume", exact=True).click()
    wait(lambda: mine()["first"] == "running" and runs.load("first").status()["step"] > step)
    four.get_by_role("button", name="Stop", exact=True).click()
    four.get_by_text("resume it to continue").wait_for(timeout=SLOW)
    four.close()
    wait(lambda: not training.working())
    assert mine() == {"first": "stopped", "second": "done", "third": "done"}
    for name in mine():
        steps = [x["step"] for x in runs.load(name).metrics() if "images_per_s" in x]
        assert steps == list(range(1, len(steps) + 1))  # no step is lost, none is there twice
    assert [p.name for p in home.iterdir() if p.name.startswith(".new-")] == []
    wait(lambda: not any(process.pid_of(record["key"]) for record in process.records()))


def select(page: Any, *numbers: int) -> None:
    """Tick rows of the table, the first is 0: they are drawn on a canvas."""
    canvas = page.locator("[data-testid=stDataFrame] canvas").first
    canvas.wait_for(timeout=SLOW)
    for number in numbers:
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        page.mouse.click(box["x"] + 16, box["y"] + HEAD + ROW * (number + 0.5))
        page.wait_for_timeout(500)  # the table tells of it after 150 ms; what is clicked next, or ticked, comes after


def opened(page: Any, server: Server, search: str, count: int = 1) -> None:
    """The page with so many runs found."""
    page.goto(f"{server.address}/runs?data=all")
    page.get_by_placeholder("name, tag").wait_for(timeout=SLOW)
    page.get_by_placeholder("name, tag").fill(search)
    page.get_by_placeholder("name, tag").press("Enter")
    page.get_by_text(re.compile(rf"^{count} of \d+ runs")).wait_for(timeout=SLOW)


def made(name: str, **config: Any) -> None:
    given = {"method": "simclr", "dataset": "digits", "epochs": 1, "seed": 0, **config}
    runs.create(name, given).set_status("done")


def test_rows_that_move_take_no_run_in_the_place_of_another(server: Server, home: Path, page: Any) -> None:
    """A run is made elsewhere while one is selected and a note typed: both stay as they are."""
    for number, name in enumerate(("row-a", "row-b", "row-c")):
        if name == "row-c":
            opened(page, server, "row-", 2)
            select(page, 0)
            page.get_by_role("heading", name="row-b").wait_for(timeout=SLOW)
            page.get_by_text("Rename, tag, note").click()
            page.get_by_role("textbox", name="Note").fill("typed, not saved")
        runs.create(name, {"method": "simclr", "dataset": "digits"}).set_status("done")
        manifest = {**runs.load(name).manifest, "created": f"2026-01-0{number + 1}T00:00:00"}
        json_files.write_json(runs.load(name).path / "run.json", manifest)  # the last one comes first
    page.get_by_text(re.compile(r"^3 of")).wait_for(timeout=SLOW)  # the page saw it by itself
    page.get_by_role("heading", name="row-b").wait_for(timeout=SLOW)
    assert page.get_by_role("textbox", name="Note").input_value() == "typed, not saved"
    page.get_by_role("button", name="Delete").click()
    page.get_by_text("Deleted: row-b").wait_for(timeout=SLOW)
    assert {"row-a", "row-c"} <= mine().keys()


EVIL = '<img src="http://evil.example/a.png" onerror="window.harm=1"> ![x](http://evil.example/b.png)'


def test_what_people_and_files_say_is_never_markup(server: Server, home: Path, page: Any) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    made("evil")
    run = runs.load("evil")
    run.set_meta(title=EVIL, tags=[EVIL, "=1+1"], note=EVIL)
    run.set_status("failed", EVIL)
    broken = runs.create("broken", {})
    (broken.path / "run.json").write_text(EVIL)
    opened(page, server, "evil")
    select(page, 0)
    page.get_by_role("heading", name="evil").wait_for(timeout=SLOW)
    page.get_by_text("broken is not listed").wait_for(timeout=SLOW)
    assert "![x](http://evil.example/b.png)" in page.locator("body").inner_text()
    page.goto(f"{server.address}/train?watch=evil")
    page.get_by_text("onerror").first.wait_for(timeout=SLOW)
    page.goto(f"{server.address}/runs?view=sweeps&sweep=<script>window.harm=1</script>")
    page.get_by_text("Still to train").wait_for(timeout=SLOW)
    assert page.evaluate("window.harm") is None
    assert [url for url in asked if "evil" in url.split("?")[0]] == []


def test_classes_and_files_with_markup_in_their_names_are_words(
    server: Server, home: Path, page: Any, tmp_path: Path
) -> None:
    """A folder of images from anywhere: its names reach every page, and the browser runs none."""
    rng = np.random.default_rng(0)
    for name in ("<img src=x onerror=window.harm=1>", "=1+1", "![x](http:evil.example)"):
        (tmp_path / "data" / name).mkdir(parents=True)
        for i in range(12):
            pixels = rng.integers(0, 256, (16, 16, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "data" / name / f"<b>{i}<svg onload=harm()>.png")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    train = [sys.executable, "-m", "contrastive_core", "train", "--run", "marked", "--epochs", "1"]
    train += ["--dataset", f"folder:{tmp_path / 'data'}", "--set", "batch_size=12"]
    done = subprocess.run(train, cwd=real.ROOT, env=server.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for path in ("explore", "samples", "loss_lab", "train?watch=marked"):
        page.goto(f"{server.address}/{path}{'&' if '?' in path else '?'}run=marked")
        page.locator("h1").first.wait_for(timeout=SLOW)
        wait(lambda: page.locator("canvas").count())
        page.wait_for_timeout(300)
        assert page.evaluate("window.harm") is None, path
        assert page.locator("[data-testid=stMain] img[src='x']").count() == 0, path
        found = page.locator("img[src*='evil']")
        where = found.first.locator("xpath=ancestor::*[4]").inner_text() if found.count() else ""
        assert [url for url in asked if "evil" in url] == [], (path, where)


def test_a_sweep_runs_cell_by_cell_and_is_drawn(server: Server, home: Path, page: Any) -> None:
    storage.write_bytes(home / ".sweeps" / "small.toml", SWEEP.format(values=[0.2, 0.5]).encode())
    page.goto(f"{server.address}/runs?view=sweeps&sweep=small")
    page.get_by_role("button", name="How long will it take?").click(timeout=SLOW)
    page.get_by_text(re.compile(r"^\d+ s$|^1 min$")).first.wait_for(timeout=SLOW)
    page.get_by_role("button", name="Start", exact=True).click()
    wait(lambda: mine().get("small-0.5-s0") == "done")
    page.get_by_text("2 of 2").wait_for(timeout=SLOW)
    page.locator(".js-plotly-plot").first.wait_for(timeout=SLOW)


def test_a_checkpoint_is_shown_before_it_is_imported(server: Server, home: Path, page: Any, tmp_path: Path) -> None:
    """One with a part missing is not taken; test_long_import.py imports a whole one."""
    net = models.resnet18()
    net.fc = torch.nn.Identity()
    state = {f"module.encoder_q.{k}": v for k, v in net.state_dict().items()}
    state = {k: v.half() if v.is_floating_point() else v for k, v in state.items()}  # half to send
    del state["module.encoder_q.layer1.0.conv1.weight"]
    torch.save({"state_dict": state, "arch": "resnet18"}, tmp_path / "moco.pth.tar")
    page.goto(f"{server.address}/runs?view=import")
    page.locator("input[type=file]").set_input_files(tmp_path / "moco.pth.tar", timeout=SLOW)
    page.get_by_role("heading", name="MoCo, resnet18").wait_for(timeout=SLOW)
    page.get_by_text("Missing: 1").wait_for(timeout=SLOW)
    assert page.get_by_role("button", name="Import", exact=True).is_disabled()


def test_nobody_was_called(server: Server) -> None:
    """All that the tests above did, trainings included, spoke to this computer only."""
    assert len(server.calls.read_text().splitlines()) > 3  # server and trainings were listened to
    assert server.called() == []
