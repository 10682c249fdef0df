"""From a slider on Train to the first step with its value, in a real browser, while an encoder trains on digits.

    python -m benchmarks.live_change [--changes 20]

An arrow key moves the slider of τ. Taken until the change is in the run's log, which is written just before the step
that uses it; the median step is told too. Goal: one second and one step.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks._timing import limit, summary
from benchmarks.browser import ROOT, chromium, homes_in, p95, serving
from contrastive_core import runs

GOAL = 1.0  # seconds, besides a step
PAUSE = 1.5  # seconds between two changes
PATIENCE = 60


def changed(tab: Any, changes: int) -> list[float]:
    """Seconds until each of some changes is logged."""
    slider, run, taken = tab.get_by_role("group", name="τ").get_by_role("slider"), runs.load("mine"), []
    slider.focus()
    for number in range(changes):
        tab.wait_for_timeout(1000 * PAUSE)
        start = time.perf_counter()
        tab.keyboard.press("ArrowLeft" if number % 2 else "ArrowRight")
        while len(run.changes()) <= number:
            if time.perf_counter() - start > PATIENCE:
                raise TimeoutError(f"change {number + 1} of {changes} is not in the log")
            time.sleep(0.002)
        taken.append(time.perf_counter() - start)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=20)
    changes = parser.parse_args().changes
    command = [sys.executable, "-m", "contrastive_core", "train", "--run", "mine", "--epochs", "100000"]
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, homes_in(Path(folder))):
        training = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        try:
            with serving(ROOT / "app.py", Path(folder)) as address, chromium() as browser:
                tab = browser.new_page(viewport={"width": 1440, "height": 1000})
                while not Path(folder, "runs/mine/metrics.jsonl").exists() and training.poll() is None:
                    time.sleep(0.1)
                tab.goto(f"{address}/train?watch=mine")
                tab.get_by_role("group", name="τ").wait_for(timeout=1000 * PATIENCE)
                taken = changed(tab, changes)
        finally:
            training.terminate()
            training.wait(PATIENCE)
        lines = [line for line in runs.load("mine").metrics() if "images_per_s" in line]
        step = statistics.median(runs.load("mine").config["batch_size"] / line["images_per_s"] for line in lines)
    print(f"{changes} changes, steps of {1e3 * step:.0f} ms; from {min(taken):.2f} to {max(taken):.2f} s")
    name = "from slider to step"
    rows = [limit(f"{name}, median", statistics.median(taken), "s", GOAL + step)]
    summary("live_change", [*rows, limit(f"{name}, 95th percentile", p95(taken), "s", GOAL + step)])


if __name__ == "__main__":
    main()
