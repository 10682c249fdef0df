"""From a move of the knob to the painted frame, in a real browser, with all parts of the view open.

    python -m benchmarks.loss_lab [--moves 120]

The mouse drags the slider of a live view on a page that Streamlit serves. Taken from the time stamp
of the browser's own event to the end of the frame that answers it. No message may go to the server.
The goals are 16 ms at 256 rows and 33 ms at 512 (95th percentile), and the same for as many pairs of two
towers, whose loss is computed in both directions.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._timing import limit, summary
from benchmarks.browser import ROOT, chromium, p95, serving

SCRIPT = ROOT / "tests" / "browser" / "live_script.py"
VIEWS = (("softmax", "grads"), ("softmax", "two"), ("softmax", "curves"), ("pair", "formula"), ("triplet", "scores"))
TOWERS = tuple((f"towers{loss}", panel) for loss in ("", " hard", " siglip") for panel in ("grads", "pushes"))
GOALS = {256: 16.0, 512: 33.0, 1024: None}

# A message posted from an animation frame arrives when that frame has been painted.
WATCH = """(slider) => {
  const channel = new MessageChannel();
  window.taken = [];
  let moved = 0;
  channel.port1.onmessage = () => {
    window.taken.push(performance.now() - moved);
    moved = 0;
  };
  slider.addEventListener("input", (e) => {
    if (moved) return;
    moved = e.timeStamp;
    requestAnimationFrame(() => channel.port2.postMessage(0));
  });
}"""


def measure(browser: Any, address: str, n: int, kind: str, panel: str, moves: int) -> dict[str, Any]:
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    sent: list[Any] = []
    page.on("websocket", lambda ws: ws.on("framesent", lambda f: sent.append(f)))
    page.goto(f"{address}/?n={n}&kind={kind}")
    page.locator(f"button[data-key={panel}]").click()
    page.wait_for_timeout(1500)
    slider = page.locator(".knob input").first
    slider.evaluate(WATCH)
    box = slider.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.5 * box["width"], y)
    page.mouse.down()
    for k in range(20):  # warm up
        page.mouse.move(box["x"] + (0.5 + 0.01 * k) * box["width"], y)
    page.evaluate("window.taken.length = 0")
    sent.clear()
    for k in range(moves):
        page.mouse.move(box["x"] + (0.5 + 0.4 * math.sin(k / 7)) * box["width"], y)
        page.wait_for_timeout(25)
    taken, told = page.evaluate("window.taken"), len(sent)
    page.mouse.up()
    page.close()
    return {
        "rows": n,
        "loss": kind,
        "panel": panel,
        "moves": len(taken),
        "median_ms": statistics.median(taken),
        "p95_ms": p95(taken),
        "messages": told,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=120)
    moves = parser.parse_args().moves
    found = []
    home = tempfile.TemporaryDirectory()
    with home as path, chromium() as browser, serving(SCRIPT, Path(path)) as address:
        for n, (kind, panel) in itertools.product(GOALS, VIEWS + TOWERS):
            found.append(measure(browser, address, n, kind, panel, moves))
            print(json.dumps(found[-1]))
    print(f"load {os.getloadavg()[0]:.1f}")
    lines = []
    for (n, most), what in itertools.product(GOALS.items(), ("rows", "pairs of two towers")):
        seen = [f for f in found if f["rows"] == n and f["loss"].startswith("towers") == (what != "rows")]
        worst = max(f["p95_ms"] for f in seen)
        if most is None:
            print(f"{n} {what}: 95th percentile at most {worst:.1f} ms")
        else:
            lines.append(limit(f"slider to paint, {n} {what}, 95th percentile", worst, "ms", most))
    messages = sum(f["messages"] for f in found)
    summary("loss_lab", [*lines, limit("messages to the server in all drags", messages, "", 0)])


if __name__ == "__main__":
    main()
