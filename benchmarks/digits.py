"""SupCon on digits by the command line: accuracy and time, beside raw pixels and a random encoder.

    python -m benchmarks.digits [--seeds 0 1 2] [--threads CORES]

Runs `train --method sup_con --dataset digits --epochs 40` and `evaluate` as a user would, start of
Python included, in a folder of its own. kNN has k = 20; nothing is selected on the test set.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks._machine import cores
from benchmarks._timing import limit, summary


def command(*argv: str) -> dict[str, Any]:
    """The JSON that a command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "contrastive_core", *argv, "--json"], capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def one(seed: int, threads: int) -> dict[str, float]:
    """Seconds of the training command and kNN of what it made."""
    name, start = f"digits-{seed}", time.perf_counter()
    argv = ["--method", "sup_con", "--dataset", "digits", "--epochs", "40", "--seed", str(seed)]
    command("train", *argv, "--run", name, "--set", f"threads={threads}")
    seconds = time.perf_counter() - start
    scores = command("evaluate", name, "--metrics", "knn")["scores"]
    return {"seconds": seconds, **{k: 100 * v["knn"]["value"] for k, v in scores.items()}}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options.add_argument("--threads", type=int, default=cores())
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CONTRASTIVE_LAB_RUNS"] = folder
        rows = [one(seed, args.threads) for seed in args.seeds]
    mean = {k: statistics.fmean(r[k] for r in rows) for k in rows[0]}
    for seed, row in zip(args.seeds, rows, strict=True):
        print(f"seed {seed}: h {row['h']:.1f} %, z {row['z']:.1f} %, in {row['seconds']:.0f} s")
    print(f"raw pixels {mean['raw']:.1f} %, random encoder {mean['random']:.1f} %")
    seconds, wrong = [r["seconds"] for r in rows], [100 - r["h"] for r in rows]
    print(f"{args.threads} threads")
    lines = [
        limit("SupCon on digits, 40 epochs", statistics.median(seconds), "s", 30.0, max(seconds)),
        limit("its kNN errors", statistics.median(wrong), "%", 1.5, max(wrong)),
    ]
    summary("digits", lines)


if __name__ == "__main__":
    main()
