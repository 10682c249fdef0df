"""How soon `contrastive-lab THING` shows something: vectors as points, a folder as its images.

Time runs from the command's start, with no server at work, to the first picture in a real browser
at the address that the command gives: the points of 10,000 × 128 vectors on a map with their
scores, and the gallery of a folder of 11,000 images of 96 × 96 pixels in ten classes; and to the
line with the address. Files are in
the system's cache after a first round that does not count; the app's own caches are new each time,
so that reading, PCA and the looks at the images are all in the figure.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._timing import limit
from benchmarks.browser import ROOT, end_tasks, homes_in

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\S*")
SECONDS, ADDRESS_SECONDS = 10.0, 8.0  # the goals
N, D, IMAGES, CLASSES, SIDE = 10_000, 128, 11_000, 10, 96


def vectors(folder: Path) -> Path:
    """Gaussian clusters of ten classes."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, N)
    rows = rng.normal(size=(CLASSES, D))[labels] + rng.normal(size=(N, D))
    np.savez(folder / "vectors.npz", features=rows.astype(np.float32), labels=labels)
    return folder / "vectors.npz"


def images(folder: Path) -> Path:
    """JPEG files of noise, a folder for each class."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for number in range(IMAGES):
        place = folder / "images" / f"class {number % CLASSES}"
        place.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8)
        Image.fromarray(pixels).save(place / f"{number}.jpg")
    return folder / "images"


def shows_points(page: Any) -> None:
    page.locator(".map canvas").first.wait_for(timeout=120_000)
    page.get_by_text(f"{N:,} points").first.wait_for(timeout=120_000)


def shows_images(page: Any) -> None:
    gallery = page.get_by_role("group", name="images of the folder")
    gallery.get_by_role("button").first.wait_for(timeout=120_000)


def once(browser: Any, thing: Path, home: Path, shown: Any) -> tuple[float, float]:
    """Seconds from the command to the address, and to the picture."""
    homes = homes_in(home)
    start = time.perf_counter()
    command = subprocess.Popen(
        [sys.executable, "-m", "contrastive_lab", str(thing), "--no-window"],
        cwd=ROOT,
        env={**os.environ, **homes},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert command.stderr is not None
        line = command.stderr.readline()
        found = ADDRESS.search(line)
        if found is None:
            raise RuntimeError(line + command.stderr.read())
        given = time.perf_counter() - start
        page = browser.new_page()
        page.goto(found[0])
        shown(page)
        seconds = time.perf_counter() - start
        page.close()
        return given, seconds
    finally:
        command.terminate()
        command.wait(30)
        end_tasks(homes)  # they outlive the server, and would slow the next round


def lines(browser: Any, repeats: int) -> list[dict[str, Any]]:
    """A line of the table for each; what was measured is printed."""
    found, addresses = [], list[float]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = {
            "from the command to the points of vectors": (vectors(folder), shows_points),
            "from the command to a folder's gallery": (images(folder), shows_images),
        }
        for case, (thing, shown) in cases.items():
            rounds = range(repeats + 1)
            taken = [once(browser, thing, folder / f"{thing.stem}-{n}", shown) for n in rounds][1:]
            addresses += [given for given, _ in taken]
            found.append(spread(case, [seconds for _, seconds in taken], SECONDS))
    return [*found, spread("from the command to the address", addresses, ADDRESS_SECONDS)]


def spread(case: str, taken: list[float], most: float) -> dict[str, Any]:
    """Print the median and the range of some seconds. Return their line."""
    median, worst = statistics.median(taken), max(taken)
    print(f"{case}: {median:.2f} s ({min(taken):.2f} to {worst:.2f})")
    return limit(case, median, "s", most, worst)
