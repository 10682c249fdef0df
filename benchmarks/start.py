"""How soon the first page is usable, and what it needs: the app against importing everything.

    python -m benchmarks.start [--repeats 7]

Time runs from the server's start to the first page's scores in a real browser; memory is the
server's resident set then. The peer is a script that imports what the app could need (torch,
torchvision, scikit-learn, umap-learn, plotly) before it shows a title, in the same browser. Then
how soon the command `contrastive-lab THING` shows points, and images (_opening.py).
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

from benchmarks import _opening
from benchmarks._timing import Seconds, figure, limit, summary
from benchmarks.browser import ROOT, chromium, free_port, wait_for

EAGER = """
import streamlit as st
import torch, torchvision, sklearn.manifold, sklearn.linear_model, umap, plotly.express
st.title("ready")
st.caption("kNN accuracy")
"""
GOALS = {"seconds": 3.0, "megabytes": 120.0}


def once(browser: Any, script: Path, home: Path) -> tuple[float, float]:
    """Seconds to the first page, and megabytes of the server then."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.headless", "true"]
    start = time.perf_counter()
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "--server.port", str(port)],
            cwd=ROOT,
            env={**os.environ, "CONTRASTIVE_LAB_RUNS": f"{home}/runs"},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health", server, home / "log")
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/explore")
        page.get_by_text("kNN accuracy").first.wait_for(timeout=120_000)
        seconds = time.perf_counter() - start
        status = Path(f"/proc/{server.pid}/status").read_text()
        kilobytes = next(int(x.split()[1]) for x in status.splitlines() if x.startswith("VmRSS"))
        page.close()
        return seconds, kilobytes / 1024
    finally:
        server.terminate()
        server.wait(20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        home = Path(folder)
        eager = home / "eager.py"
        eager.write_text(EAGER)
        scripts = {"app": ROOT / "app.py", "eager": eager}
        seen: dict[str, list[tuple[float, float]]] = {k: [] for k in scripts}
        for _ in range(repeats + 1):
            for name, script in scripts.items():
                seen[name].append(once(browser, script, home))
        opening = _opening.lines(browser, repeats)
    found = {name: [statistics.median(v[k] for v in rows[1:]) for k in (0, 1)] for name, rows in seen.items()}
    spread = [min(s for s, _ in seen["app"][1:]), max(s for s, _ in seen["app"][1:])]
    seconds, megabytes = found["app"]
    print(f"app   {seconds:.2f} s ({spread[0]:.2f} to {spread[1]:.2f}), {megabytes:.0f} MB")
    print(f"eager {found['eager'][0]:.2f} s, {found['eager'][1]:.0f} MB")
    lines = [
        limit("first page, from the server's start", seconds, "s", GOALS["seconds"], max(spread)),
        limit("its memory", megabytes, "MB", GOALS["megabytes"]),
    ]
    name = "first page beside eager imports"
    rounds = [Seconds([s for s, _ in seen[side][1:]]) for side in ("app", "eager")]
    eager_line = figure(name, rounds[0], "eager imports", rounds[1], 1.0, "s")
    summary("start", [*lines, eager_line, *opening])


if __name__ == "__main__":
    main()
