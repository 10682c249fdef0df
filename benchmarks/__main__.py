"""Run the benchmarks one after the other and write benchmarks/RESULTS.md.

    python -m benchmarks [--only losses probe ...] [--report]
    python -m benchmarks --only scale --works samples compare --rows 1000000

Each script's output and last line go to benchmarks/results/NAME.json beside the commit, the
versions and the machine. RESULTS.md is made of these files and names the machine and the day of most,
so a part can be run again alone. Of `scale`, which takes hours, some works at some numbers of rows can
be run: what they print takes the place of the same lines, and when each was run stands beside.
`--report` only writes the text again. What is known of a missed goal stands in missed.toml.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import _machine
from benchmarks._report import Record, goals, merged, read, report
from contrastive_core.base import storage
from contrastive_core.base.json_files import write_json

ROOT = Path(__file__).resolve().parents[1]
RESULTS, REPORT = ROOT / "benchmarks/results", ROOT / "benchmarks/RESULTS.md"
NAMES = (
    "losses",
    "dataset_losses",
    "augment",
    "towers",
    "train_step",
    "digits",
    "probe",
    "umap",
    "planted_errors",
    "label_errors",
    "start",
    "first_suspect",
    "pages",
    "watch",
    "loop_doctor",
    "loss_lab",
    "playground",
    "live_change",
    "transitions",
    "scatter",
    "adviser",
    "images",
    "scale",
    "neighbors",
)
VERSIONS = (
    "torch",
    "torchvision",
    "numpy",
    "scikit-learn",
    "umap-learn",
    "streamlit",
    "lightly",
    "pytorch-metric-learning",
    "faiss-cpu",
    "kornia",
    "cleanlab",
)


def run(name: str, arguments: Sequence[str] = ()) -> Record:
    """One script's output, its last line, and where and when it ran."""
    before, start = os.getloadavg()[0], time.perf_counter()
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise RuntimeError(f"{done.stdout}{name} failed:\n{done.stderr[-2000:]}")
    return {
        **json.loads(lines[-1]),
        "text": [line for line in lines[:-1] if line != _machine.about()],
        "seconds": time.perf_counter() - start,
        "load_before": before,
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "machine": _machine.about(),
        "versions": versions(),
    }


def commit() -> str | None:
    """The commit that ran, with + where files were changed since; None without git."""
    command = ["git", "describe", "--always", "--exclude=*", "--dirty=+"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() or None


def versions() -> dict[str, str]:
    found = {}
    for name in VERSIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    options.add_argument("--report", action="store_true", help="only write the text again")
    options.add_argument("--works", nargs="+", help="of scale, these alone")
    options.add_argument("--rows", nargs="+", help="at these numbers of rows")
    args = options.parse_args()
    some = ["--only", *args.works] if args.works else []
    some += ["--rows", *args.rows] if args.rows else []
    for name in () if args.report else args.only:
        print(f"{name} …", flush=True)
        try:
            record = run(name, some)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            continue
        print("\n".join(record["text"]), flush=True)
        path = RESULTS / f"{name}.json"
        if some:
            record = merged(json.loads(path.read_text()) if path.exists() else None, record)
        write_json(path, record)
    storage.write_bytes(REPORT, report(read(RESULTS, NAMES), goals()).encode())


if __name__ == "__main__":
    main()
