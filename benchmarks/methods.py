"""Does every method learn? Its gain over the random encoder, paired on the same test images.

    python -m benchmarks.methods [--dataset shapes] [--seeds 0 1 2] [--epochs 24] [--jobs 2]
                                 [--only simclr ...] [--runs FOLDER] [--out FILE]

Trains each registered method with its defaults for the data set, by the command line, one thread
each. Score: kNN (k = 20, τ 0.07) of the backbone features h of the test images after the last
epoch; the reference is the same encoder before training. A method has learned if the lower end of
the paired 95 % interval of its gain is above zero for each seed. Finished runs in FOLDER are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._training import trained
from contrastive_core import methods
from contrastive_core.base.score import difference
from contrastive_core.compare.embed import data_of, embed_run, random_encoder
from contrastive_core.compare.evaluate import evaluate_sets
from contrastive_core.runs.run import Run
from contrastive_core.spaces.embedding_set import EmbeddingSet


def correct(train: EmbeddingSet, test: EmbeddingSet) -> np.ndarray:
    """Whether kNN gives each test row its own label (n)."""
    return evaluate_sets(["knn"], train, test)["knn"].arrays["per_sample"] == 1


def gain(run: Run) -> dict[str, float]:
    """kNN of h and of the random encoder in per cent, and the paired gain with its interval."""
    parts = {split: data_of(run, split) for split in ("train", "test")}
    learned = correct(*(embed_run(run, split, "h", "cpu") for split in parts))
    before = correct(*(random_encoder(run, part, "cpu")[0] for part in parts.values()))
    value, (low, high) = difference(learned, before)
    scores = {"knn": learned.mean(), "random": before.mean(), "gain": value}
    return {k: 100 * float(v) for k, v in {**scores, "low": low, "high": high}.items()}


def one(job: tuple[str, int], args: argparse.Namespace) -> dict[str, Any]:
    method, seed = job
    name = f"{method}-{args.dataset}-{seed}"
    argv = ["--method", method, "--dataset", args.dataset, "--epochs", str(args.epochs)]
    run = trained(name, *argv, "--seed", str(seed), "--set", "snapshot_every=0")
    epochs = [line for line in run.metrics() if "knn" in line]
    row = {"method": method, "seed": seed, **gain(run), "seconds": epochs[-1]["seconds"]}
    print(f"{run.name}: {row['knn']:.1f} %, gain {row['low']:+.1f} to {row['high']:+.1f}", flush=True)
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """The figures as a Markdown table, a method a line."""
    head = "| method | kNN of h, % | random encoder, % | lowest end of the gain, points | s |"
    lines = [head, "| --- | ---: | ---: | ---: | ---: |"]
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        knn = " / ".join(f"{row['knn']:.1f}" for row in own)
        random = np.mean([row["random"] for row in own])
        low, seconds = min(row["low"] for row in own), np.mean([row["seconds"] for row in own])
        lines.append(f"| {method} | {knn} | {random:.1f} | {low:+.1f} | {seconds:.0f} |")
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--dataset", default="shapes")
    options.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options.add_argument("--epochs", type=int, default=24)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--only", nargs="*", default=methods.names())
    options.add_argument("--runs", type=Path, help="folder to keep the runs in")
    options.add_argument("--out", type=Path, help="JSON file")
    args = options.parse_args()
    jobs = [(method, seed) for seed in args.seeds for method in args.only]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        os.environ["CONTRASTIVE_LAB_RUNS"] = str(args.runs or folder)
        rows = sorted(pool.map(partial(one, args=args), jobs), key=lambda r: r["method"])
    print(table(rows))
    if args.out:
        args.out.write_text(json.dumps({"epochs": args.epochs, "rows": rows}, indent=1) + "\n")
    missed = [f"{r['method']} (seed {r['seed']})" for r in rows if r["low"] <= 0]
    print("every method has learned" if not missed else f"not learned: {', '.join(missed)}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
