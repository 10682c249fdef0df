"""An import whose images take long to decode, in a real browser: followed, refreshed, stopped."""

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import SLOW
from PIL import Image
from servers import Server

from benchmarks.browser import end_tasks
from contrastive_core import runs
from contrastive_core.base.storage import SHIPPED

HELD = """
import os, sys, time
def hold(event, args, hold=os.environ["HOLD"]):
    name = str(args[0])[-8:] if event == "open" else ""
    if name in ("held.png", "n/00.png") and os.path.exists(hold):
        frame = sys._getframe()
        while frame and frame.f_code.co_name != "decode_chunk":
            frame = frame.f_back
        time.sleep(0.2 if frame else 0)  # longer than two lines of progress are apart
        while frame and name == "held.png" and os.path.exists(hold):
            time.sleep(0.05)
sys.addaudithook(hold)
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, prepared: Path) -> Iterator[Server]:
    """A server whose tasks stay at the last of 33 images that they decode, while `hold` is there;
    a run of these images makes them the first to be judged on."""
    found = Server(tmp_path_factory.mktemp("lab") / "server")
    shutil.copytree(prepared, found.home / "home")
    (found.home / "audit" / "sitecustomize.py").write_text(HELD)
    found.environment["HOLD"] = str(found.home / "hold")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTRASTIVE_LAB_RUNS", str(found.home / "runs"))
        runs.create("mine", {"method": "simclr", "dataset": f"folder:{found.home / 'images'}"}).set_status("done")
    found.start()
    yield found
    found.end()


def save_images(folder: Path) -> None:
    """Anew for each test: what was decoded for an earlier one is not these."""
    rng = np.random.default_rng(0)
    names = [*(f"train/{i:02d}.png" for i in range(32)), "train/held.png"]
    for name in (*names, *(f"test/{i}.png" for i in range(9))):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (32, 32, 3), np.uint8)).save(folder / name)


@pytest.fixture
def held(lab: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(lab.home / "runs"))
    save_images(lab.home / "images")
    shutil.rmtree(lab.home / "home" / "uploads", ignore_errors=True)
    (lab.home / "hold").touch()
    yield lab
    end_tasks(lab.environment)


def test_an_import_that_decodes_for_long_is_followed_stopped_and_begun_again(held: Server, page: Any) -> None:
    weights = SHIPPED / "simclr-shapes" / "weights.safetensors"
    page.goto(f"{held.address}/runs?view=import")
    page.locator("input[type=file]").set_input_files(weights, timeout=SLOW)
    page.get_by_role("heading", name="Contrastive Lab, small").wait_for(timeout=SLOW)
    name = f"long{time.time_ns()}"  # a second try has another
    page.get_by_label("Name of the run").fill(name)
    page.get_by_label("Name of the run").press("Enter")
    page.get_by_role("button", name="Import", exact=True).click()
    dialog = page.get_by_role("dialog")
    told = dialog.get_by_text(re.compile(rf"Importing {name}: decoding 33 images.* on disk\) · 50 %"))
    told.wait_for(timeout=SLOW)
    page.reload()
    told.wait_for(timeout=SLOW)
    page.get_by_role("button", name="Stop").click()
    dialog.get_by_text(f"Importing {name}: It was stopped.").wait_for(timeout=SLOW)
    assert not (held.home / "runs" / name).exists()
    page.reload()  # what was stopped does not begin by itself
    dialog.get_by_text(f"Importing {name}: It was stopped.").wait_for(timeout=SLOW)
    (held.home / "hold").unlink()
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("heading", name=name).wait_for(timeout=SLOW)  # Explore shows it
    page.locator(f".st-key-toolbar input[value^={name}]").wait_for(timeout=SLOW)
    assert runs.load(name).status()["status"] == "done"
    assert not list((held.home / "home" / "uploads").iterdir())
