"""A visit of one page: two choices with a widget of each kind, in an app that has a sweep, queued runs
and a run in the bin. `tests/app/test_every_choice.py` tries every widget, without a browser."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from choices import CHOICES, LOOK, POPOVERS, Answers, Choosing, shown, state_of
from patience import PATIENCE

from benchmarks.browser import end_tasks
from contrastive_core import runs
from contrastive_core.base.paths import SHIPPED
from contrastive_core.engine import queue

__all__ = ["SWEEP", "Visit", "filled", "second_choice_counts"]

# What counts when a button is pressed, as what stands in a form does.
LATER = ("Checkbox Fetch", "Selectbox Evaluation data", "Selectbox See its loss", "Number ")  # a link leads there
SETTINGS = (" train-", " adviser-", " recorded-step")  # keys of what a training starts with, or what a canvas shows
PICKER = "Selectbox Run run-picker"  # stands on every page, and is tried on one
SWITCH = "Group Language language-switch"  # likewise (test_chinese_pages.py): it renames all others
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
    """A page that is tried out: its widgets, and those that were tried."""

    def __init__(self, page: Any) -> None:
        self.page, self.answers, self.address = page, Answers(page), ""
        self.tried: dict[str, int] = {}

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
        while before != (now := (list(shown(self.page)), self.page.locator(POPOVERS).count())):
            before = now
            self.page.wait_for_timeout(700)
            self.answers.wait(0)

    def try_kinds(self) -> None:
        """One widget of each kind, from the last to the first: what stands below changes less."""
        of_kind = {name.split(" ", 1)[0]: name for name in shown(self.page) if not name.startswith((PICKER, SWITCH))}
        for name in reversed(of_kind.values()):
            if name not in shown(self.page):
                self.open(self.address)
            self.try_out(name)

    def try_out(self, name: str) -> None:
        """Make the choices; each is shown and changes the page."""
        self.tried[name] = 0
        choosing = Choosing(self.page, self.answers, name)
        is_later = choosing.widget()["form"] or name.startswith(LATER) or any(key in name for key in SETTINGS)
        for _ in range(CHOICES):
            before = state_of(self.page)
            if not choosing.choose():
                break
            end = time.monotonic() + PATIENCE
            while not is_later and state_of(self.page) == before:  # a part draws when it can
                assert time.monotonic() < end, f"{name}: {choosing.chosen} changes nothing"
                self.page.wait_for_timeout(LOOK)
            self.tried[name] += 1


def second_choice_counts(visit: Visit) -> None:
    """Two choices with one widget of each kind that a page has; the second counts as the first did."""
    visit.try_kinds()
    assert visit.tried
    assert set(visit.tried.values()) == {CHOICES}, visit.tried
