"""Time to accuracy on two cores: SimCLR on CIFAR-10's JPEG files until kNN of the test images is right often enough.

    python -m benchmarks.time_to_accuracy --cifar PATH --runs FOLDER [--each 1000] [--target 38]
    python -m benchmarks.time_to_accuracy --runs FOLDER --report

PATH holds train/CLASS/*.jpg and test/CLASS/*.jpg; the first EACH images of a class are trained on, all test images (of
1,000 a class) are scored after each epoch: kNN of h, k = 20, τ 0.07. Both sides train the small encoder.

Ours is `train` with its defaults, from files that were never decoded: decoding, monitor and saved states are within the
time. The peer is the loop of lightly's documentation: ImageFolder, its transform for CIFAR-10, its head and loss, SGD
with a rate of 0.06, batches of 256, two workers. Scoring is in neither's time. The time is processor time of all
processes, which other work on the machine changes little; with two cores it is about twice the seconds on a clock.

Each seed trains both sides, each in a process of its own; a finished run is kept in FOLDER. The ratio is the geometric
mean over seeds, with its 95 % interval (Student's t of the logarithms).
"""

from __future__ import annotations

import argparse
import contextlib
import math
import multiprocessing
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

from benchmarks._lightly import PeerSimCLR
from benchmarks._training import rows_of
from benchmarks.methods_table import prepared
from contrastive_core import metrics, runs
from contrastive_core.base.json_files import read_json, write_json
from contrastive_core.data import datasets
from contrastive_core.models.encoders import create_encoder
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train.loop import train
from contrastive_core.train.setup import prepare

GOAL = 4.0
SIDES = ("ours", "lightly")


class Reached(Exception):
    """kNN accuracy has reached the target."""


def processor_seconds() -> float:
    """Of this process and of its workers that have ended."""
    return sum(os.times()[:4])


class Clock:
    """Processor seconds of training, without those of scoring; the accuracy after each epoch."""

    def __init__(self, dataset: str, target: float, limit: float) -> None:
        self.sets = [lambda split=split: datasets.load(dataset, split) for split in datasets.SPLITS]
        self.target, self.limit = target, limit
        self.curve: list[tuple[float, float]] = []
        self.scoring, self.began = 0.0, processor_seconds()

    def after_epoch(self, encoder: torch.nn.Module) -> None:
        """Score. Raises Reached at the target, or at the limit of time."""
        start = processor_seconds()
        train_rows, test_rows = (rows_of(encoder, load()) for load in self.sets)
        right = 100 * float(metrics.create("knn")(train_rows, test_rows).value or 0)
        self.curve.append((start - self.scoring - self.began, right))
        print(f"  {self.curve[-1][0]:.0f} s: kNN {right:.1f} %", flush=True)
        self.scoring += processor_seconds() - start
        if right >= self.target or self.curve[-1][0] > self.limit:
            raise Reached


def ours(dataset: str, seed: int, epochs: int, clock: Clock) -> None:
    """`train` with its defaults."""
    setup = prepare(TrainConfig("simclr", dataset, epochs=epochs, seed=seed, device="cpu", threads=2))
    run = runs.create("ours", setup.config.to_dict())

    def on_lines(lines: list[dict[str, float]]) -> None:
        if any("lr" not in line for line in lines):  # an epoch's
            clock.after_epoch(setup.method.encoder)
            setup.method.train()

    train(setup, run, on_lines=on_lines)


def theirs(dataset: str, seed: int, epochs: int, clock: Clock) -> None:
    """lightly's loop; its images are decoded anew in each epoch, as ImageFolder does."""
    from lightly.transforms.simclr_transform import SimCLRTransform
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder

    torch.manual_seed(seed)
    torch.set_num_threads(2)
    settings = prepare(TrainConfig("simclr", dataset, seed=seed, device="cpu")).method.settings
    peer = PeerSimCLR(create_encoder("small", 3, 32), settings).train()
    files = ImageFolder(f"{dataset.removeprefix('folder:')}/train", SimCLRTransform(input_size=32, gaussian_blur=0.0))
    loader: DataLoader[Any] = DataLoader(files, batch_size=256, shuffle=True, drop_last=True, num_workers=2)
    optimizer = torch.optim.SGD(peer.parameters(), lr=0.06)
    for _ in range(epochs):
        for (x0, x1), _labels in loader:
            peer.loss(x0, x1, 0.0).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            optimizer.zero_grad()
        clock.after_epoch(peer.backbone)
        peer.train()


def one(side: str, dataset: str, seed: int, path: Path, args: argparse.Namespace) -> None:
    """Train one side and write its curve."""
    work: dict[str, Callable[[str, int, int, Clock], None]] = {"ours": ours, "lightly": theirs}
    with tempfile.TemporaryDirectory() as home:
        os.environ["CONTRASTIVE_LAB_HOME"], os.environ["CONTRASTIVE_LAB_RUNS"] = f"{home}/home", f"{home}/runs"
        clock = Clock(dataset, args.target, args.limit)
        with contextlib.suppress(Reached):
            work[side](dataset, seed, args.epochs, clock)
    write_json(path, {"curve": clock.curve, "target": args.target})


def time_to(curve: list[tuple[float, float]], target: float) -> float:
    """Seconds of the first epoch whose accuracy is at least the target; inf if none is."""
    return next((seconds for seconds, right in curve if right >= target), math.inf)


def ratio_of(pairs: list[tuple[float, float]]) -> tuple[float, float, float]:
    """How many times as long the peer takes: the geometric mean of theirs over ours, and its 95 % interval."""
    logs = np.log([theirs / ours for ours, theirs in pairs])
    mean, n = float(logs.mean()), len(logs)
    half = float(stats.t.ppf(0.975, n - 1) * logs.std(ddof=1) / math.sqrt(n)) if n > 1 else math.inf
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def report(folder: Path) -> str:
    """The seconds of each seed, and the ratio with its interval."""
    made = {path.stem: read_json(path) for path in sorted(folder.glob("*.json"))}
    seeds = sorted(name.split("-")[1] for name in made if name.startswith("ours-") and f"lightly-{name[5:]}" in made)
    lines, found = ["| seed | ours | lightly |", "|---|---|---|"], []
    for seed in seeds:
        taken = [time_to(made[f"{side}-{seed}"]["curve"], made[f"{side}-{seed}"]["target"]) for side in SIDES]
        lines.append(f"| {seed} | " + " | ".join(f"{x:.0f} s" if x < math.inf else "not reached" for x in taken) + " |")
        if max(taken) < math.inf:
            found.append((taken[0], taken[1]))
    if not found:
        return "\n".join([*lines, "No seed reached the accuracy on both sides."])
    ratio, low, high = ratio_of(found)
    interval = f"[{low:.1f}, {high:.1f}]" if len(found) > 1 else "one seed, no interval"
    said = "reached" if low >= GOAL else "not shown"
    return "\n".join([*lines, f"lightly takes {ratio:.1f} times as long, {interval}; goal {GOAL:g} times: {said}"])


def main(argv: list[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cifar", type=Path, help="folder of JPEG files by split and class")
    options.add_argument("--runs", type=Path, required=True, help="folder to keep the runs in")
    options.add_argument("--each", type=int, default=1000, help="training images of a class")
    options.add_argument("--target", type=float, default=38.0, help="kNN accuracy in per cent")
    options.add_argument("--epochs", type=int, default=100, help="at most")
    options.add_argument("--limit", type=float, default=3600.0, help="processor seconds of a run, at most")
    options.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options.add_argument("--report", action="store_true", help="print the table of what is there")
    args = options.parse_args(argv)
    args.runs.mkdir(parents=True, exist_ok=True)
    fork = multiprocessing.get_context("fork")  # imports are done once
    for seed, side in [] if args.report else [(seed, side) for seed in args.seeds for side in SIDES]:
        path = args.runs / f"{side}-{seed}.json"
        if not path.exists():
            print(f"{side}, seed {seed}", flush=True)
            dataset = prepared("cifar10", args.cifar, args.runs, {"train": args.each, "test": 1000})
            child = fork.Process(target=one, args=(side, dataset, seed, path, args))
            child.start()
            child.join()
    print(report(args.runs))


if __name__ == "__main__":
    main()
