"""The playground in a browser: steps per second, frames while it learns, time until the sphere tells digits apart.

    python -m benchmarks.playground [--seconds 60]

The file that `contrastive-lab playground` writes is opened in Chromium without a window, which draws on the processor,
and learns at its first setting: NT-Xent, 128 images in a batch. Steps are those that the page tells, frames the times
between two of them. PyTorch takes the same steps, network, batch and optimizer on one thread before and after; views
are not drawn for it. Goals: 30 steps a second, frames of 33 ms, 70 % within 40 s, a file of 1.5 MB.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks._timing import Seconds, figure, limit, summary
from benchmarks.browser import chromium, p95
from contrastive_core.spaces.small_samples import load_samples
from contrastive_lab.playground.file import kernels, page

GOALS = {"steps": 30, "frame": 33.0, "seconds": 40.0, "bytes": 1.5e6}
SIZES, BATCH, GOOD = (64, 256, 128, 3), 128, 0.70
PEER_STEPS = 100
STATE = """() => {
  const {step, knn} = document.getElementById("playground")._playground.state?.sides[0] ?? {step: 0, knn: 0};
  return {step, knn};
}"""
WATCH = """() => {
  window.frames_taken = [];
  let last = performance.now();
  const frame = (now) => { window.frames_taken.push(now - last); last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
}"""


def learned(seconds: float, file: Path) -> dict[str, Any]:
    """Steps a second, frames, and seconds until kNN passes GOOD."""
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": 1440, "height": 900})
        tab.goto(file.as_uri())
        tab.wait_for_function("() => document.getElementById('playground')?._playground?.state")
        tab.evaluate(WATCH)
        tab.get_by_role("button", name="Learn").click()
        start, good = time.perf_counter(), float("inf")
        while (passed := time.perf_counter() - start) < seconds:
            state = tab.evaluate(STATE)
            if state["knn"] >= GOOD:
                good = min(good, passed)
            tab.wait_for_timeout(200)
        found = {"steps": state["step"] / passed, "knn": state["knn"], "good": good}
        return found | {"frames": tab.evaluate("window.frames_taken")}


def peer_step() -> float:
    """Seconds of a step of PyTorch on one thread."""
    import torch

    from contrastive_core import losses, pairs

    torch.set_num_threads(1)
    layers = [m for a, b in pairwise(SIZES) for m in (torch.nn.Linear(a, b), torch.nn.ReLU())][:-1]
    model, criterion = torch.nn.Sequential(*layers), losses.create("nt_xent", temperature=0.2)
    optimizer, views = torch.optim.Adam(model.parameters(), 0.003), torch.rand(BATCH, 2, SIZES[0])
    start = 0.0
    for step in range(PEER_STEPS + 10):
        if step == 10:
            start = time.perf_counter()
        optimizer.zero_grad()
        criterion(pairs.from_views(model(views))).value.backward()
        optimizer.step()
    return (time.perf_counter() - start) / PEER_STEPS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "playground.html")
        file.write_text(page(kernels(), load_samples("digits"), "digits"), "utf-8")
        peers = [peer_step()]
        found = learned(seconds, file)
        peers.append(peer_step())
        size = file.stat().st_size
    print(f"{found['steps']:.1f} steps a second, kNN {100 * found['knn']:.1f} % after {seconds:.0f} s")
    step = 1 / max(found["steps"], 1e-9)
    lines = [
        limit("playground, a step of 128 images", 1e3 * step, "ms", 1e3 / GOALS["steps"]),
        figure("playground, a step of 128 images, beside", Seconds([step, step]), "PyTorch", Seconds(peers), 0.0),
        limit("playground, frame while it learns, 95th percentile", p95(found["frames"]), "ms", GOALS["frame"]),
        limit("playground, until kNN passes 70 %", found["good"], "s", GOALS["seconds"]),
        limit("playground, its file", size / 1e6, "MB", GOALS["bytes"] / 1e6),
    ]
    summary("playground", lines)


if __name__ == "__main__":
    main()
