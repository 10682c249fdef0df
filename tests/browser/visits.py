"""A visit of one page: three choices in a row with each of its widgets, in an app that has a sweep,
runs that wait, and one in the bin.

The widgets are found in the page as it is drawn; what a choice uncovers is tried in its turn,
before the next choice hides it again.
"""

from __future__ import annotations

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
from contrastive_core.jobs import queue_files
from contrastive_core.paths import SHIPPED

__all__ = ["Visit", "every_choice_counts", "filled"]

# What counts when a button is pressed, as what stands in a form does.
LATER = ("Checkbox Fetch", "Selectbox To be judged on", "Number Runs to train now")
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
values = [0.1, 0.2, 0.5, 1.0, 2.0]
"""


@contextmanager
def filled(home: Path) -> Iterator[dict[str, str]]:
    """A folder of runs with a sweep of which two cells are done, runs that wait, and one in the
    bin; gives the environment that names it. Whatever was started in it ends with it."""
    (home / ".sweeps").mkdir()
    (home / ".sweeps" / "two.toml").write_text(SWEEP)
    for temperature in (0.2, 0.5):
        copy_of("simclr-digits", home / f"two-{temperature}-s0", temperature)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTRASTIVE_LAB_RUNS", str(home))
        for name in ("later", "last"):
            queue_files.add(name, [], 0.0, "held", hours=0.0)
        run = runs.create("old", {"method": "simclr", "dataset": "digits"})
        (home / ".bin").mkdir()
        run.path.rename(home / ".bin" / "old-01234567")
        yield {"CONTRASTIVE_LAB_RUNS": str(home)}
        end_tasks()


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
        self.page, self.answers = page, Answers(page)
        self.tried: dict[str, int] = {}
        self.first: list[str] = []

    def open(self, address: str) -> None:
        """Opened anew, with everything made that the page waits for."""
        self.page.goto("about:blank")
        end_tasks()
        asked = self.answers.asked
        self.page.goto(address)
        self.answers.wait(asked + 1)
        if "watch=" not in address:  # a training is followed as long as one looks
            self.page.wait_for_function(MADE, polling=LOOK, timeout=1000 * PATIENCE)
            self.answers.wait(asked + 1)
            self.wait_until_drawn()

    def wait_until_drawn(self) -> None:
        """What was made is drawn by an answer that nobody asked for: until the page stays."""
        before: object = None
        while before != (now := (list(shown(self.page)), self.page.locator(POPOVERS).count())):
            before = now
            self.page.wait_for_timeout(700)
            self.answers.wait(0)

    def try_all(self, address: str) -> None:
        """From the last to the first: what stands below changes less."""
        self.open(address)
        self.first = list(shown(self.page))
        for button in self.page.locator(POPOVERS).all():
            self.try_behind(button)
        for name in reversed(self.first):
            if name in self.tried:
                continue
            if name not in shown(self.page):
                self.open(address)
            self.try_out(name)

    def try_behind(self, button: Any) -> None:
        """What opens above the page."""
        button.click()
        self.page.get_by_test_id("stPopoverBody").first.wait_for(timeout=1000 * PATIENCE)
        self.answers.wait(0)  # what stands in it may come a moment later
        for name in [n for n in shown(self.page) if n not in (*self.first, *self.tried)]:
            self.try_out(name, button)
        self.page.keyboard.press("Escape")

    def try_out(self, name: str, behind: Any = None) -> None:
        """Make the choices, and those with what each uncovers; what stands beside it from the
        start is tried by who uncovered both."""
        self.tried[name] = 0
        beside = list(shown(self.page))
        choosing = Choosing(self.page, self.answers, name, behind)
        is_later = choosing.widget()["form"] or name.startswith(LATER)
        for _ in range(CHOICES):
            before = state_of(self.page)
            if not choosing.choose():
                break
            end = time.monotonic() + PATIENCE
            while not is_later and state_of(self.page) == before:  # a part draws when it can
                assert time.monotonic() < end, f"{name}: {choosing.chosen} changes nothing"
                self.page.wait_for_timeout(LOOK)
            self.tried[name] += 1
            for other in shown(self.page):
                if other not in (*self.tried, *self.first, *beside):
                    self.wait_until_drawn()  # what was there before may be going
                    if other in shown(self.page):
                        self.try_out(other)


def every_choice_counts(app: str, page: Any, addresses: tuple[str, ...], labels: str) -> None:
    """Three choices with every widget of a page; those of these labels, by commas, were there."""
    wanted, visit = labels.split(", "), Visit(page)
    visit.tried[SWITCH] = CHOICES
    if "Run" not in wanted:
        visit.tried[PICKER] = CHOICES
    for address in addresses:
        visit.try_all(f"{app}/{address}")
    tried = [widget.split(" ", 1)[1] for widget in visit.tried]
    missing = [w for w in wanted if not any(t.startswith(w) for t in tried)]
    assert not missing, f"{missing} were not among {tried}"
    assert set(visit.tried.values()) == {CHOICES}, visit.tried
