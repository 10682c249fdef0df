"""Orderings that the papers found, on `shapes` with the small encoder, three seeds.

    python -m benchmarks.orderings [--epochs 24] [--seeds 0 1 2] [--jobs 2] [--runs FOLDER]
                                   [--only momentum ...] [--out FILE]

Each run differs from its method's defaults by one setting, and is scored by kNN (k = 20) of the
test images after its last epoch. An ordering counts as shown if the gap between the means exceeds
the pooled deviation of the seeds; else it is reported as not shown. Finished runs in FOLDER stay.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks._training import knn, trained


@dataclass(frozen=True)
class Arm:
    """One side of an ordering: a method, what is set, and which rows are scored."""

    label: str
    method: str
    set: tuple[str, ...] = ()
    layer: str = "h"


CROP = Arm("crop alone", "simclr", ("recipe.jitter=0", "recipe.gray=0"))
COLOR = Arm("color alone", "simclr", ("recipe.crop=0", "recipe.flip=0"))


def simclr(label: str, *given: str) -> Arm:
    return Arm(label, "simclr", given)


def tau(value: float) -> Arm:
    return simclr(f"τ = {value}", f"loss.temperature={value}")


def momentum(value: float) -> Arm:
    return Arm(f"m = {value}", "moco_v1", (f"method.momentum={value}",))


ORDERINGS: dict[str, tuple[str, list[tuple[Arm, Arm]]]] = {
    "momentum": (
        "MoCo, arXiv 1911.05722: a slow key encoder, 0 fails",
        [(Arm("m = 0.99", "moco_v1"), momentum(0)), (Arm("m = 0.99", "moco_v1"), momentum(0.9))],
    ),
    "head": (
        "SimCLR, arXiv 2002.05709: features before the head, and a deeper head",
        [
            (Arm("h", "simclr"), Arm("z", "simclr", layer="z")),
            (Arm("nonlinear head", "simclr"), simclr("linear head", "method.head=linear")),
            (simclr("linear head", "method.head=linear"), simclr("no head", "method.head=none")),
        ],
    ),
    "augmentations": (
        "SimCLR, arXiv 2002.05709: crop with color over either alone",
        [(Arm("crop and color", "simclr"), CROP), (Arm("crop and color", "simclr"), COLOR)],
    ),
    "temperature": (
        "SimCLR, arXiv 2002.05709, table 5: 0.1 over 0.05, 0.5 and 1",
        [(tau(0.1), tau(0.05)), (tau(0.1), tau(0.5)), (tau(0.1), tau(1))],
    ),
    "negatives": (
        "MoCo, arXiv 1911.05722, figure 3: more negatives",
        [(Arm("K = 2048", "moco_v1"), Arm("K = 64", "moco_v1", ("method.queue=64",)))],
    ),
}


def score(arm: Arm, seed: int, epochs: int) -> float:
    """kNN in per cent of an arm's run with a seed."""
    settings = [x for pair in arm.set for x in ("--set", pair)]
    tail = "".join(f"-{x.partition('.')[2].replace('=', '')}" for x in arm.set)
    name = f"{arm.method}-shapes-{seed}{tail}"
    argv = ["--method", arm.method, "--dataset", "shapes", "--epochs", str(epochs)]
    argv += ["--seed", str(seed), "--set", "snapshot_every=0", *settings]
    return knn(trained(name, *argv), arm.layer)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--epochs", type=int, default=24)
    options.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--only", nargs="*", choices=list(ORDERINGS), default=list(ORDERINGS))
    options.add_argument("--runs", type=Path, help="folder to keep the runs in")
    options.add_argument("--out", type=Path, help="JSON file")
    args = options.parse_args()
    arms = {a: None for k in args.only for pair in ORDERINGS[k][1] for a in pair}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        os.environ["CONTRASTIVE_LAB_RUNS"] = str(args.runs or folder)
        first = {(a.method, a.set): a for a in arms}  # h and z are of one run: never twice at once
        jobs = [(a, seed) for seed in args.seeds for a in first.values()]
        list(pool.map(lambda job: score(*job, args.epochs), jobs))
        found = {a: [score(a, seed, args.epochs) for seed in args.seeds] for a in arms}
    rows = []
    print("| ordering | kNN, % | kNN, % | gap | pooled deviation | shown |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    for name in args.only:
        for a, b in ORDERINGS[name][1]:
            rows.append(compared(name, a, b, found[a], found[b]))
            print(line(rows[-1]))
    if args.out:
        args.out.write_text(json.dumps({"epochs": args.epochs, "rows": rows}, indent=1) + "\n")


def compared(name: str, a: Arm, b: Arm, x: list[float], y: list[float]) -> dict:
    """Means of both arms, their gap and the pooled deviation of the seeds."""
    pooled = math.sqrt((statistics.variance(x) + statistics.variance(y)) / 2)
    gap = statistics.fmean(x) - statistics.fmean(y)
    return {
        "ordering": name,
        "better": a.label,
        "worse": b.label,
        "kNN better": x,
        "kNN worse": y,
        "gap": gap,
        "pooled deviation": pooled,
        "shown": gap > pooled,
    }


def line(row: dict) -> str:
    """A row as Markdown."""
    x, y = (statistics.fmean(row[f"kNN {k}"]) for k in ("better", "worse"))
    return (
        f"| {row['better']} over {row['worse']} | {x:.1f} | {y:.1f} | {row['gap']:+.1f} | "
        f"{row['pooled deviation']:.1f} | {'yes' if row['shown'] else 'not shown'} |"
    )


if __name__ == "__main__":
    main()
