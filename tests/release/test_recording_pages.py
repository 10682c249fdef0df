"""A recording in a real browser is followed while it grows."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from patience import SLOW

from contrastive_core import watch
from contrastive_core.base.storage import ROOT
from contrastive_core.data import datasets
from contrastive_core.recording.watch import Watch

ROWS = 40  # of a step


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings")


@pytest.fixture(scope="module")
def app(serve: Callable[..., str], home: Path) -> str:
    return serve(ROOT / "app.py", environment={"CONTRASTIVE_LAB_RUNS": str(home)})


@pytest.fixture(autouse=True)
def here(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(home))


def record(w: Watch, first: int, last: int) -> None:
    """Steps of somebody's loop over digits, and the probe set at the last of them."""
    labels = torch.from_numpy(datasets.load("digits", "train").labels[:ROWS])
    generator = torch.Generator().manual_seed(first)
    for step in range(first, last + 1):
        z = torch.eye(10)[labels][:, None] + torch.randn(ROWS, 2, 10, generator=generator) / step
        w._recorder.wait()  # so that none is dropped, however slow the machine
        w.step(z, labels=labels, ids=torch.arange(ROWS), step=step)
    w.probe(lambda x: x, [(z[:, 0], labels, torch.arange(ROWS))], step=last)
    w._recorder.wait()


def begun(name: str) -> Watch:
    return watch(name, loss="nt_xent", temperature=0.2, every=1, dataset="digits", strict=True)


def test_it_is_followed_while_it_grows(app: str, page: Any, tmp_path: Path) -> None:
    name = f"grows-{tmp_path.name[-1]}"  # another one at each try
    with begun(name) as w:
        record(w, 1, 2)
        page.goto(f"{app}/explore?run={name}")
        page.get_by_text("growing").first.wait_for(timeout=SLOW)
        page.locator(".map canvas").first.wait_for(timeout=SLOW)
        page.locator("[class*=st-key-toolbar-more] button").first.click(timeout=SLOW)  # says what is on the map
        page.get_by_text(re.compile(r"probe set at step 2\b")).first.wait_for(timeout=SLOW)
        record(w, 3, 5)
        page.get_by_text(re.compile(r"probe set at step 5\b")).first.wait_for(timeout=SLOW)
    page.goto(f"{app}/runs?run={name}")
    # the table is a canvas; what a screen reader is told of its cells is never visible
    row = page.locator("tr").filter(has_text=name)
    row.locator("td", has_text=re.compile("^recording$")).wait_for(state="attached", timeout=SLOW)
    assert page.get_by_text("growing").count() == 0
