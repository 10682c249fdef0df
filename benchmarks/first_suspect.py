"""How soon after a training on one's own images the list of suspects is there.

    python -m benchmarks.first_suspect [--images 11000]

A folder of JPEG files of 32 × 32 pixels in ten classes (noise around a color for each class, 2 % of
the files in another class's folder), SimCLR for one epoch. Time runs from the last line of the
training's log of epochs to the training's end, which embeds and scores what was trained, and on to
the list of likely wrong labels.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks._timing import limit, summary
from benchmarks.browser import ROOT, homes_in

CLASSES, SIDE, WRONG, MOST = 10, 32, 0.02, 60.0


def write_images(folder: Path, count: int) -> None:
    from PIL import Image

    rng = np.random.default_rng(0)
    colors = rng.integers(0, 256, (CLASSES, 1, 1, 3))
    for number in range(count):
        truth = number % CLASSES
        given = (truth + 1) % CLASSES if rng.random() < WRONG else truth
        pixels = np.clip(colors[truth] + rng.normal(0, 60, (SIDE, SIDE, 3)), 0, 255).astype(np.uint8)
        place = folder / f"class {given}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(place / f"{number}.jpg")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--images", type=int, default=11_000)
    images = options.parse_args().images
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "images"
        write_images(folder, images)
        homes = homes_in(Path(name))

        def command(*arguments: str) -> None:
            environment = {**os.environ, **homes}
            program = [sys.executable, "-m", "contrastive_core"]
            subprocess.run([*program, *arguments], cwd=ROOT, env=environment, check=True, capture_output=True)

        setting = ("--method", "simclr", "--dataset", f"folder:{folder}", "--epochs", "1")
        command("train", *setting, "--run", "trained")
        ended = time.time()
        (log,) = Path(name).rglob("trained/metrics.jsonl")
        last = log.stat().st_mtime
        command("samples", "trained")
        listed = time.time()
    after, whole = ended - last, listed - last
    print(f"{images:,} images: after the last epoch {after:.1f} s until the end, {whole:.1f} s until the list")
    summary("first_suspect", [limit(f"from the last epoch to the list, {images:,} images", whole, "s", MOST)])


if __name__ == "__main__":
    main()
