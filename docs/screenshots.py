"""Pictures of the running app for the README and the tutorials: `python -m docs.screenshots [NAME ...]`.

Each picture is a WebP in docs/pictures, at twice the pixels. labels.json holds the labels of the page that it shows;
tests/release/test_screenshots.py compares them with the app, and fails when a picture has become old. The Chinese
pictures need a Chinese font. The folder `pages` shows every page at 1440 pixels, light and dark, and at 390. The one
moving picture, `drag`, has a frame for each temperature: the star, the matrix and the slider of the Loss Lab.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

from benchmarks.browser import ROOT, chromium, serving

__all__ = ["COMMAND", "LABELS", "MOVING", "PAGES", "PICTURES", "labels", "open_picture"]

COMMAND = "python -m docs.screenshots"
FOLDER = Path(__file__).with_name("pictures")
LABELS = FOLDER / "labels.json"
PATIENCE = 120  # seconds
PAUSE = 2.0  # seconds between two looks at a page; it is ready if they see the same
QUALITY = 60
SCALE = 2  # pixels of a picture for each of the page
NARROW = 768  # pixels of a page below which it is one on a phone, which is touched
BUSY = """[data-testid=stApp][data-test-script-state=running], [data-stale=true],
  [data-testid=stMain] :is([data-testid=stSkeleton], [data-testid=stProgress], [data-testid=stSpinner]):visible"""
ROLES = "button|radio|checkbox|switch|tab|heading|slider|combobox|spinbutton|textbox"
SAMPLE = re.compile(r"(train|test)/\d+")  # a button of a strip of images, which fills while one looks
LABEL = re.compile(rf'^\s*- (?P<role>{ROLES}) (?P<name>"(?:[^"\\]|\\.)*")', re.M)


@dataclass(frozen=True)
class Picture:
    """A page and how it is shown. `ready` is a text of the page; `steps` is how often the button Step is
    pressed before the picture is taken, `learn` for how many seconds the playground learns, and `after` is
    opened before, for what its page computes."""

    address: str
    ready: str
    height: int = 810
    width: int = 1296
    theme: str = "light"
    language: str = "en"
    steps: int = 0
    learn: int = 0
    after: Picture | None = None


PICTURES = {
    "home": Picture("", "Find wrong labels"),
    "loss_lab": Picture("loss_lab?run=simclr-shapes&on=matrix", "Negatives that matter, mean"),
    "playground": Picture("loss_lab?run=simclr-shapes&on=playground", "Untrained, kNN is right", learn=60),
    "explore": Picture("explore?run=simclr-shapes", "1,000 points"),
    "circle": Picture("loss_lab?on=circle&loss=sup_con&groups=4&points=48&temperature=0.2", "Trails", steps=24),
    "lesson_1": Picture("loss_lab?lesson=1", "Lesson 1 of 10"),
    "lesson_3": Picture("loss_lab?lesson=3", "Lesson 3 of 10"),
    "lesson_4": Picture("loss_lab?lesson=4", "Lesson 4 of 10"),
    "train": Picture("train?method=simclr&data=digits", "Start"),
    "compare": Picture("compare?runs=simclr-digits,sup_con-digits", "UMAP of 360 samples"),
    "runs": Picture("runs", "See its loss"),
    "methods": Picture("methods?method=simclr", "Builds on"),
    "suspect": Picture("samples?example=wrong-labels", "Looks like"),
    "random_check": Picture(
        "samples?example=wrong-labels&list=random",
        "Nearest images",
        after=Picture("samples?example=wrong-labels", "Nearest images labeled"),
    ),
    "zh_home": Picture("", "查找错误标签", language="zh"),
    "zh_loss_lab": Picture("loss_lab?run=simclr-shapes&on=matrix", "权重", theme="dark", language="zh"),
}
OF_PAGES = {name: PICTURES[name] for name in ("home", "explore", "compare", "train", "runs", "methods")} | {
    "loss_lab": Picture("loss_lab?run=simclr-shapes", "Train with this"),
    "samples": PICTURES["suspect"],
}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"width": 1440, "height": 900},
    "dark": {"width": 1440, "height": 900, "theme": "dark"},
    "phone": {"width": 390, "height": 844},
}
PAGES = {
    f"pages/{name}_{look}": replace(picture, **changed)
    for name, picture in OF_PAGES.items()
    for look, changed in LOOKS.items()
}
MOVING = "drag"
TEMPERATURES = (1, 0.8, 0.65, 0.5, 0.4, 0.32, 0.25, 0.2, 0.16, 0.13, 0.1, 0.08, 0.065, 0.05, 0.04, 0.03)
STILL, STEP = 1400, 130  # milliseconds of the first and the last frame, and of the others
PAGES["pages/compare_phone"] = replace(PAGES["pages/compare_phone"], ready="○ 2")  # its map has no status there


def open_picture(page: Any, app: str, picture: Picture) -> None:
    """Open the page of a picture and wait until it is drawn."""
    if picture.after:
        open_picture(page, app, picture.after)
    page.emulate_media(color_scheme=picture.theme, reduced_motion="reduce")
    page.set_viewport_size({"width": picture.width, "height": picture.height})
    page.goto(f"{app}/{picture.address}{'&' if '?' in picture.address else '?'}lang={picture.language}")
    ready = page.get_by_text(picture.ready).filter(visible=True).first
    example = page.get_by_role("button", name="Make the example")  # asked of who does not come from the front page
    ready.or_(example).first.wait_for(timeout=1000 * PATIENCE)
    if "example=" in picture.address and example.count():
        example.click()
        example.wait_for(state="detached", timeout=1000 * PATIENCE)  # until then the page shows another run
    ready.wait_for(timeout=1000 * PATIENCE)


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
    """A WebP, and the labels."""
    open_picture(page, app, picture)
    found = ready_labels(page)
    for step in range(1, picture.steps + 1):
        page.get_by_role("button", name="Step", exact=True).click()
        page.get_by_text(f"Step {step}", exact=True).first.wait_for(timeout=1000 * PATIENCE)
    if picture.learn:
        learn(page, picture.learn)
    out = io.BytesIO()
    Image.open(io.BytesIO(page.screenshot())).convert("RGB").save(out, "WEBP", quality=QUALITY, method=6)
    return out.getvalue(), found


def learn(page: Any, seconds: int) -> None:
    """Let the playground learn."""
    page.get_by_role("button", name="Learn", exact=True).click()
    page.wait_for_timeout(1000 * seconds)
    page.get_by_role("button", name="Pause", exact=True).click()
    page.wait_for_timeout(1000 * PAUSE)


def drag(page: Any, app: str) -> bytes:
    """The star and the matrix of one batch side by side, while the temperature falls."""
    frames = [Image.new("RGB", (0, 0))] * len(TEMPERATURES)
    for stage, selector in (("star", ".stage > .picture"), ("matrix", "canvas.matrix")):
        open_picture(page, app, Picture(f"loss_lab?run=simclr-shapes&on={stage}", "Train with this", 700, 1000))
        ready_labels(page)
        field = page.get_by_role("spinbutton", name="τ, temperature, as a number")
        for number, value in enumerate(TEMPERATURES):
            field.fill(str(value))
            field.press("Enter")
            field.blur()
            page.wait_for_timeout(500)
            shots = [Image.open(io.BytesIO(page.locator(s).first.screenshot())) for s in (selector, ".held .knob")]
            frames[number] = frame(frames[number], *(shot.convert("RGB") for shot in shots))
    out, still = io.BytesIO(), [STILL, *[STEP] * (len(frames) - 2), STILL]
    frames[0].save(
        out, "WEBP", save_all=True, append_images=frames[1:], duration=still, loop=0, quality=QUALITY, method=6
    )
    return out.getvalue()


def frame(before: Image.Image, stage: Image.Image, slider: Image.Image) -> Image.Image:
    """A stage as a square above its slider, or the second stage beside the first."""
    edge, low = SCALE * 440, slider.height
    square = ImageOps.fit(stage, (edge, edge))
    made = Image.new("RGB", (2 * edge + low // 2, edge + low), slider.getpixel((2, low // 2)))
    if before.width:
        made.paste(before)
        made.paste(square, (made.width - edge, 0))
    else:
        made.paste(square)
        made.paste(slider, ((made.width - slider.width) // 2, edge))
    return made


def main(names: list[str]) -> None:
    """Take the pictures with these names, or all."""
    (FOLDER / "pages").mkdir(parents=True, exist_ok=True)
    stored = json.loads(LABELS.read_text("utf-8")) if LABELS.is_file() else {}
    with tempfile.TemporaryDirectory() as home, serving(ROOT / "app.py", Path(home)) as app, chromium() as browser:
        for name in names or [*PICTURES, *PAGES, MOVING]:
            picture = (PICTURES | PAGES).get(name)
            is_phone = picture is not None and picture.width < NARROW
            page = browser.new_page(device_scale_factor=SCALE, has_touch=is_phone)
            if picture is None:
                (FOLDER / f"{name}.webp").write_bytes(drag(page, app))
                continue
            data, stored[name] = take(page, app, picture)
            page.close()
            (FOLDER / f"{name}.webp").write_bytes(data)
            print(f"{name}: {len(data) / 1000:.0f} kB, {len(stored[name])} labels", flush=True)
            kept = {known: stored[known] for known in PICTURES if known in stored}
            LABELS.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
