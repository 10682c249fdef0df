"""Pictures of the running app for the README and the tutorials: `python -m docs.screenshots [NAME ...]`.

Each picture is a PNG in docs/pictures. labels.json holds the labels of the page that each one shows;
tests/browser/test_screenshots.py compares them with the app, and fails when a picture has become old. The Chinese
pictures need a Chinese font.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.browser import ROOT, chromium, serving

__all__ = ["COMMAND", "LABELS", "PICTURES", "labels", "open_picture"]

COMMAND = "python -m docs.screenshots"
FOLDER = Path(__file__).with_name("pictures")
LABELS = FOLDER / "labels.json"
PATIENCE = 120  # seconds
PAUSE = 1.0  # seconds between two looks at a page; it is ready if they see the same
COLORS = 256  # of the palette of a picture
BUSY = """[data-testid=stApp][data-test-script-state=running], [data-stale=true],
  [data-testid=stMain] :is([data-testid=stSkeleton], [data-testid=stProgress], [data-testid=stSpinner]):visible"""
ROLES = "button|radio|checkbox|switch|tab|heading|slider|combobox|spinbutton|textbox"
SAMPLE = re.compile(r"(train|test)/\d+")  # a button of a strip of images, which fills while one looks
LABEL = re.compile(rf'^\s*- (?P<role>{ROLES}) (?P<name>"(?:[^"\\]|\\.)*")', re.M)


@dataclass(frozen=True)
class Picture:
    """A page and how it is shown. `ready` is a text of the page; `steps` is how often the button Step is
    pressed before the picture is taken."""

    address: str
    ready: str
    height: int = 860
    width: int = 1280
    theme: str = "light"
    language: str = "en"
    steps: int = 0


PICTURES = {
    "loss_lab": Picture("loss_lab?run=simclr-shapes", "Weight on each pair", 985),
    "explore": Picture("explore?run=simclr-shapes", "kNN accuracy", 770, 1440),
    "circle": Picture(
        "loss_lab?on=circle&loss=sup_con&groups=4&points=48&temperature=0.2", "Scatter again", 960, steps=24
    ),
    "lesson_1": Picture("loss_lab?lesson=1", "Lesson 1 of 10", 1100),
    "lesson_3": Picture("loss_lab?lesson=3", "Lesson 3 of 10", 1100),
    "lesson_4": Picture("loss_lab?lesson=4", "Lesson 4 of 10", 1100),
    "train": Picture("train?method=simclr&data=digits", "Start"),
    "compare": Picture("compare?runs=simclr-digits,sup_con-digits", "Where they disagree", 1150),
    "suspect": Picture("samples?example=wrong-labels", "Likely mislabeled"),
    "random_check": Picture("samples?example=wrong-labels&list=random", "Random check"),
    "zh_home": Picture("", "查找错误标签", language="zh"),
    "zh_loss_lab": Picture("loss_lab?run=simclr-shapes", "样本对权重", 1000, theme="dark", language="zh"),
}


def open_picture(page: Any, app: str, picture: Picture) -> None:
    """Open the page of a picture and wait until it is drawn."""
    page.emulate_media(color_scheme=picture.theme)
    page.set_viewport_size({"width": picture.width, "height": picture.height})
    page.goto(f"{app}/{picture.address}{'&' if '?' in picture.address else '?'}lang={picture.language}")
    page.get_by_text(picture.ready).filter(visible=True).first.wait_for(timeout=1000 * PATIENCE)


def labels(page: Any) -> list[str]:
    """Role and accessible name of each control and heading, in the order of the page; numbers count as 0."""
    found = LABEL.findall(page.get_by_test_id("stMain").aria_snapshot())
    named = [(role, json.loads(name)) for role, name in found]
    return [f"{role} {re.sub('[0-9]+', '0', name)}" for role, name in named if not SAMPLE.fullmatch(name)]


def ready_labels(page: Any) -> list[str]:
    """The labels, once the page is not busy and no longer changes."""
    before, end = None, time.monotonic() + PATIENCE
    while (now := labels(page)) != before or page.locator(BUSY).count():
        if time.monotonic() > end:
            raise TimeoutError(f"{page.url} still changes after {PATIENCE} s")
        before = now
        page.wait_for_timeout(1000 * PAUSE)
    return now


def take(page: Any, app: str, picture: Picture) -> tuple[bytes, list[str]]:
    """A PNG with a palette, and the labels."""
    open_picture(page, app, picture)
    found = ready_labels(page)
    for _ in range(picture.steps):
        page.get_by_role("button", name="Step", exact=True).click()
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    out = io.BytesIO()
    image.quantize(COLORS, kmeans=3, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue(), found


def main(names: list[str]) -> None:
    """Take the pictures with these names, or all."""
    FOLDER.mkdir(exist_ok=True)
    stored = json.loads(LABELS.read_text("utf-8")) if LABELS.is_file() else {}
    with tempfile.TemporaryDirectory() as home, serving(ROOT / "app.py", Path(home)) as app, chromium() as browser:
        for name in names or PICTURES:
            page = browser.new_page()
            data, stored[name] = take(page, app, PICTURES[name])
            page.close()
            (FOLDER / f"{name}.png").write_bytes(data)
            print(f"{name}: {len(data) / 1000:.0f} kB, {len(stored[name])} labels", flush=True)
            kept = {known: stored[known] for known in PICTURES if known in stored}
            LABELS.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
