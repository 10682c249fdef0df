"""A visit of one page, in an app that has a sweep, queued runs and a run in the bin."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from choices import LOOK, POPOVERS, Answers, open_all
from patience import PATIENCE

from benchmarks.browser import end_tasks
from contrastive_core import runs
from contrastive_core.base.storage import SHIPPED
from contrastive_core.engine import queue

__all__ = ["SWEEP", "Visit", "filled"]

WIDGETS = "[data-testid=stMain] [data-testid=stWidgetLabel]"
MADE = "() => !document.querySelector('[data-testid=stMain] [data-testid=stProgress]')"
SWEEP = """
form = "line"
[base]
dataset = "digits"
epochs = 1
[[axes]]
key = "loss.temperature"
values = {values}
"""


@contextmanager
def filled(home: Path) -> Iterator[dict[str, str]]:
    """A folder of runs with a sweep of which two cells are done, runs that wait, and one in the
    bin; gives the environment that names it. Whatever was started in it ends with it."""
    (home / ".sweeps").mkdir()
    (home / ".sweeps" / "two.toml").write_text(SWEEP.format(values=[0.1, 0.2, 0.5, 1.0, 2.0]))
    for temperature in (0.2, 0.5):
        copy_of("simclr-digits", home / f"two-{temperature}-s0", temperature)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTRASTIVE_LAB_RUNS", str(home))
        for name in ("later", "last"):
            queue.add(name, [], 0.0, "held", hours=0.0)
        run = runs.create("old", {"method": "simclr", "dataset": "digits"})
        (home / ".bin").mkdir()
        run.path.rename(home / ".bin" / "old-01234567")
    environment = {"CONTRASTIVE_LAB_RUNS": str(home)}
    yield environment
    end_tasks(environment)


def copy_of(shipped: str, path: Path, temperature: float) -> None:
    shutil.copytree(SHIPPED / shipped, path)
    manifest = json.loads((path / "run.json").read_text())
    manifest["name"] = path.name
    manifest["config"]["loss_knobs"]["temperature"] = temperature
    manifest["config"]["epochs"] += int(10 * temperature)
    (path / "run.json").write_text(json.dumps(manifest))


class Visit:
    """A page, and the answers of its server."""

    def __init__(self, page: Any) -> None:
        self.page, self.answers, self.address = page, Answers(page), ""

    def open(self, address: str) -> None:
        """Opened anew, with everything made that the page waits for."""
        self.begin(address)
        self.finish()

    def begin(self, address: str) -> None:
        """Opened anew; what takes long is still made."""
        self.address = address
        self.page.goto("about:blank")
        end_tasks()
        asked = self.answers.asked
        self.page.goto(address)
        self.answers.wait(asked + 1)

    def finish(self) -> None:
        """Wait until everything is made and drawn, and unfold what is folded up."""
        if "watch=" not in self.address:  # a training is followed as long as one looks
            self.page.wait_for_function(MADE, polling=LOOK, timeout=1000 * PATIENCE)
            self.answers.wait(0)
            self.wait_until_drawn()

    def wait_until_drawn(self) -> None:
        """What was made is drawn by an answer that nobody asked for: until the page stays."""
        before: object = None
        while before != (now := (self.page.locator(WIDGETS).count(), self.page.locator(POPOVERS).count())):
            before = now
            open_all(self.page)
            self.page.wait_for_timeout(700)
            self.answers.wait(0)
