"""Frames of everything that moves on the pages, in a real browser that draws on the processor.

    python -m benchmarks.transitions [--only circle morph ...] [--rounds 3] [--real-time]

Each transition is started as a person starts it. A frame's time is the distance between two drawn frames, as the
browser stamps them: the scripts, the layout and the painting of a frame count. Of what a page draws, the longest
series without a gap counts as the transition. Of several rounds the best counts, since other work on the machine
only adds time; with --real-time (root, Linux) the browser goes before other work meanwhile. The goal is 33 ms (95th
percentile). A transition that a page does not have is named and left out.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._timing import limit, summary
from benchmarks.browser import ROOT, chromium, p95, serving
from benchmarks.loss_lab import before_others

GOAL = 33.0  # milliseconds
GAP = 400  # milliseconds without a frame that end a transition
FEWEST = 8  # frames of a transition
PATIENCE = 60_000  # milliseconds until a page is there
SCREEN = {"width": 1440, "height": 900}

# Stamps of the frames in which a script of the page draws.
WATCH = """
  window.drawnFrames = [];
  const ask = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (draw) => ask((time) => {
    if (window.drawnFrames.at(-1) !== time) window.drawnFrames.push(time);
    draw(time);
  });
"""


@dataclass(frozen=True)
class Transition:
    """Something that moves: where, what has to be there, what starts it, and for how long it is watched."""

    title: str
    address: str
    ready: str  # a selector
    start: Callable[[Any], None]
    seconds: float = 3.0


def press(name: str, role: str = "button") -> Callable[[Any], None]:
    """Press the first control of this name."""

    def start(page: Any) -> None:
        page.get_by_role(role, name=name, exact=True).first.click(timeout=5000)

    return start


def click(selector: str) -> Callable[[Any], None]:
    """Click what has no name of its own."""

    def start(page: Any) -> None:
        page.locator(selector).first.click(timeout=5000)

    return start


def draw_around(page: Any) -> None:
    """Draw around the points in the middle of a map."""
    box = page.locator(MAP).first.bounding_box()
    corners = [(box["x"] + part * box["width"], box["y"] + box["height"] * row) for part, row in LASSO]
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner, steps=8)
    page.mouse.up()


LASSO = ((0.3, 0.3), (0.7, 0.3), (0.7, 0.7), (0.3, 0.7))  # shares of the width and the height
MAP = ".map canvas"
PAIR = "simclr-digits,sup_con-digits"
TRANSITIONS = {
    "star": Transition("Home, the star glides", "", "canvas", lambda page: None, 6),
    "circle": Transition("Loss Lab, 24 points follow a loss", "loss_lab?on=circle", ".ring", press("Run")),
    "crowd": Transition("Loss Lab, 200 points", "loss_lab?on=circle&points=200&speed=200", ".ring", press("Run")),
    "collapse": Transition(
        "Loss Lab, a training collapses",
        "loss_lab?on=circle&loss=negative_cosine&stop_gradient=no",
        ".ring",
        press("Run"),
    ),
    "bars": Transition(
        "Loss Lab, bars of another loss",
        "loss_lab?on=matrix",
        ".pushes button:not(.is)",
        click(".pushes button:not(.is):enabled"),
        6,
    ),
    "features": Transition("Explore, from h to z", "explore?run=simclr-shapes", ".map canvas", press("z", "radio"), 6),
    "maps": Transition(
        "Explore, from UMAP to PCA", "explore?run=simclr-shapes", ".map canvas", press("PCA", "radio"), 6
    ),
    "selection": Transition("Explore, points are selected", "explore?run=simclr-shapes", MAP, draw_around, 4),
    "morph": Transition("Compare, from one map to the other", f"compare?runs={PAIR}", MAP, click(".morph button"), 4),
    "epochs": Transition("Train, from epoch to epoch", "train?watch=simclr-shapes", MAP, click(".epochs button"), 6),
}


def longest(stamps: list[float]) -> list[float]:
    """Milliseconds between the frames of the longest series without a gap."""
    best: list[float] = []
    now: list[float] = []
    for before, after in itertools.pairwise(stamps):
        now = [*now, after - before] if after - before < GAP else []
        best = max(best, now, key=len)
    return best


def watch(
    browser: Any, address: str, transition: Transition, priority: Callable[[], AbstractContextManager[None]]
) -> list[float]:
    """Milliseconds of each frame of one round; empty where the page has no such transition."""
    from playwright.sync_api import TimeoutError as NotThere

    page = browser.new_page(viewport=SCREEN)
    page.add_init_script(WATCH)
    try:
        page.goto(f"{address}/{transition.address}")
        page.locator(transition.ready).first.wait_for(timeout=PATIENCE)
        page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(timeout=PATIENCE)
        page.wait_for_timeout(1500)
        page.evaluate("window.drawnFrames.length = 0")
        with priority():
            transition.start(page)
            page.wait_for_timeout(1000 * transition.seconds)
        return longest(page.evaluate("window.drawnFrames"))
    except NotThere:
        return []
    finally:
        page.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=list(TRANSITIONS), choices=TRANSITIONS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--real-time", action="store_true")
    args = parser.parse_args()
    priority, lines = before_others if args.real_time else nullcontext, []
    print(f"{'transition':40s} {'frames':>6s} {'p50':>8s} {'p95':>8s}  goal {GOAL:.0f} ms")
    with tempfile.TemporaryDirectory() as home, chromium() as browser, serving(ROOT / "app.py", Path(home)) as address:
        for transition in map(TRANSITIONS.get, args.only):
            rounds = [watch(browser, address, transition, priority) for _ in range(args.rounds)]
            seen = [taken for taken in rounds if len(taken) >= FEWEST]
            if not seen:
                print(f"{transition.title:40s} not on the page")
                continue
            best = min(seen, key=p95)
            middle, worst = statistics.median(best), p95(best)
            verdict = "met" if worst <= GOAL else "missed"
            print(f"{transition.title:40s} {len(best):6d} {middle:5.1f} ms {worst:5.1f} ms  {verdict}", flush=True)
            lines.append(limit(f"frame, {transition.title}, 95th percentile", worst, "ms", GOAL))
    print(f"load {os.getloadavg()[0]:.1f}{', the browser before other work' if args.real_time else ''}")
    slowest = max(line["value"] for line in lines)
    summary("transitions", [limit("frame of the slowest transition, 95th percentile", slowest, "ms", GOAL), *lines])


if __name__ == "__main__":
    main()
