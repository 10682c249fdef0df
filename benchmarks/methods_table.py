"""Every method at equal time, beside lightly's implementation of seven of them.

    nice -n 5 python -m benchmarks.methods_table --cifar PATH --runs FOLDER [--sets digits shapes cifar10]
    python -m benchmarks.methods_table --runs FOLDER --report     # the table of what is there

Equal time: each run trains in a process of its own with one thread until the process has used the set's seconds of
processor time (SECONDS), which other work on the machine does not change much. Preparing the data and scoring are not
counted. The learning rate is one cycle over these seconds on both sides; the weights at their end are scored. Ours and
lightly's run by turns, seeds outermost. A finished run is kept in FOLDER and not trained again.

Both sides have the small encoder at half width, heads of the same widths, batches of 128, AdamW with the same rate and
the same augmentations: ours as `train` runs it, lightly's as its documentation writes it (benchmarks/_lightly.py), on
pictures held in memory and in the loader's own process. CIFAR-10: PATH/train/CLASS/*.jpg and PATH/test/CLASS/*.jpg, the
first 500 and 100 images of each class, at 32 pixels.

Scores of h of the test images: kNN (k = 20, τ 0.07) and a linear probe, means over seeds with 95 % intervals over seeds
and images. Memory: the peak of the process over what its imports take. Rows "raw pixels", "untrained encoder" and
"frozen" (the shipped simclr-shapes, never trained on these images) are what any training has to beat.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import shutil
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks._lightly import PEERS, peer_batches
from benchmarks._methods_report import report
from benchmarks._training import rows_of
from contrastive_core import runs
from contrastive_core.base.memory import write_npz
from contrastive_core.compare.embed import load_model, raw_pixels
from contrastive_core.compare.evaluate import evaluate_sets
from contrastive_core.data import datasets
from contrastive_core.data.datasets import Dataset
from contrastive_core.models.encoders import create_encoder
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.train.loop import compute_step
from contrastive_core.train.optim import create_optimizer, learning_rate, set_learning_rate
from contrastive_core.train.setup import TrainSetup, prepare

SECONDS = {"digits": 30.0, "shapes": 60.0, "cifar10": 60.0}
OTHERS = ("moco_v3", "swav", "lejepa", "moco_v1", "inst_disc", "inva_spread", "cpc")
FROZEN = "simclr-shapes"
WIDTH: dict[str, Any] = {"width": 0.5}
EACH = {"train": 500, "test": 100}  # CIFAR-10 images of a class
PARTS = 1_000_000  # of the time, for the schedule in steps
SCORES = ("knn", "linear_probe")
Made = dict[str, Any]


def setup_of(method: str, dataset: str, seed: int) -> TrainSetup:
    """Everything that our training needs."""
    return prepare(TrainConfig(method, dataset, seed=seed, device="cpu", threads=1, encoder_knobs=WIDTH))


def rate(setup: TrainSetup, share: float) -> float:
    """The learning rate when this share of the time is used."""
    config = setup.config
    return learning_rate(round(share * PARTS), PARTS, config.lr or 0, config.schedule or "")


def for_seconds(step: Callable[[float, int], int], seconds: float) -> Made:
    """Call `step` with the share of the time that is used and the steps before, until it is; it returns how many
    images it took."""
    began, images, steps = time.process_time(), 0, 0
    while (share := (time.process_time() - began) / seconds) < 1:
        images += step(share, steps)
        steps += 1
    return {"images": images, "steps": steps, "seconds": time.process_time() - began}


def ours(method: str, dataset: str, seed: int, seconds: float) -> tuple[Any, Made]:
    """Our method's encoder after so many seconds, and what was counted."""
    setup = setup_of(method, dataset, seed)
    setup.method.train()
    batches = (b for epoch in range(1 << 30) for b in setup.loader.batches(setup.loader.epoch(epoch)))

    def step(share: float, steps: int) -> int:
        setup.method.total_steps = round((steps + 1) / max(share, 1 / PARTS))  # so many, at this pace
        set_learning_rate(setup.optimizer, rate(setup, share))
        batch = next(batches)
        made = compute_step(setup, batch)
        setup.optimizer.step()
        setup.method.after_step(made.pairs)
        return len(batch.images)

    return setup.method.encoder, for_seconds(step, seconds)


def theirs(method: str, dataset: str, seed: int, seconds: float) -> tuple[Any, Made]:
    """The same of lightly's implementation. Sizes and rates are those that ours would have."""
    setup = setup_of(method, dataset, seed)
    config, recipe = setup.config, setup.method.recipe
    torch.manual_seed(seed)
    shape = setup.dataset.images.shape[1:]
    peer = PEERS[method](create_encoder("small", shape[0], shape[1], **WIDTH), setup.method.settings).train()
    optimizer = create_optimizer(config.optimizer or "", peer.parameters(), config.lr or 0, config.weight_decay or 0)
    batches = peer_batches(np.asarray(setup.dataset.images), recipe, config.batch_size or 0)

    def step(share: float, steps: int) -> int:
        set_learning_rate(optimizer, rate(setup, share))
        x0, x1 = next(batches)
        loss = peer.loss(x0, x1, share)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        return len(x0)

    return peer.backbone, for_seconds(step, seconds)


def reference(which: str, dataset: str, seed: int) -> Any:
    """The rows of a split as a function: pixels, or an encoder that did not learn from these images."""
    if which == "raw pixels":
        return raw_pixels
    if which == "frozen":
        encoder = load_model(runs.load(FROZEN), device="cpu").encoder
    else:
        encoder = setup_of("simclr", dataset, seed).method.encoder
    return lambda part: rows_of(encoder, part)


def memory() -> float:
    """Peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one(side: str, name: str, dataset: str, seed: int, path: Path, seconds: float) -> None:
    """Train, score and write one run."""
    before = memory()
    made: Made = {}
    if side == "reference":
        embed = reference(name, dataset, seed)
    else:
        encoder, made = {"ours": ours, "lightly": theirs}[side](name, dataset, seed, seconds)
        made["memory"] = memory() - before

        def embed(part: Dataset) -> EmbeddingSet:
            return rows_of(encoder, part)

    train, test = (embed(datasets.load(dataset, split)) for split in ("train", "test"))
    scores = evaluate_sets(SCORES, train, test)
    right = {k: np.asarray(scores[k].per_sample) == 1 for k in SCORES}
    write_npz(path, **right, **{k: np.array(v) for k, v in made.items()})
    figures = " ".join(f"{k} {100 * v.mean():.1f} %" for k, v in right.items())
    print(f"{path.stem}: {figures} {made} {time.process_time():.0f} s in all", flush=True)


def jobs(args: argparse.Namespace) -> list[tuple[str, str, str, int]]:
    """Side, method, set and seed of each run, in the order of training."""
    first = [(side, m) for m in args.only or PEERS for side in ("ours", "lightly") if side == "ours" or m in PEERS]
    later = [] if args.only else [("ours", m) for m in OTHERS]
    order = [(seed, runs) for runs in (first, later) for seed in args.seeds]
    trained = [(side, m, d, seed) for seed, runs in order for side, m in runs for d in args.sets]
    known = [("reference", "raw pixels", d, args.seeds[0]) for d in args.sets]
    known += [("reference", "untrained encoder", d, seed) for d in args.sets for seed in args.seeds]
    known += [("reference", "frozen", d, args.seeds[0]) for d in args.sets if d == "cifar10"]
    return known + trained


def prepared(name: str, cifar: Path | None, runs_folder: Path, each: Mapping[str, int] = EACH) -> str:
    """The data set as `train` takes it: of CIFAR-10, copies of the first `each` images of a class, by split."""
    if name != "cifar10":
        return name
    target = runs_folder.resolve() / "cifar10"
    for split, count in each.items():
        for place in sorted((cifar / split).iterdir()) if cifar else ():
            (target / split / place.name).mkdir(parents=True, exist_ok=True)
            for path in sorted(place.glob("*.jpg"))[:count]:
                if not (copy := target / split / place.name / path.name).exists():
                    shutil.copyfile(path, copy)
    return f"folder:{target}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sets", nargs="+", default=list(SECONDS), choices=list(SECONDS))
    options.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options.add_argument("--only", nargs="+", help="methods")
    options.add_argument("--scale", type=float, default=1.0, help="of the seconds, for a trial")
    options.add_argument("--at-once", type=int, default=1, help="runs at a time, on as many idle cores")
    options.add_argument("--cifar", type=Path, help="folder of JPEG files by split and class")
    options.add_argument("--runs", type=Path, required=True, help="folder to keep the runs in")
    options.add_argument("--report", action="store_true", help="print the table of what is there")
    args = options.parse_args()
    args.runs.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("CONTRASTIVE_LAB_HOME", str(args.runs.resolve() / "home"))
    torch.set_num_threads(1)
    fork = multiprocessing.get_context("fork")  # imports are done once
    running: list[Any] = []
    for side, name, dataset, seed in () if args.report else jobs(args):
        path = args.runs / f"{dataset}--{side}--{name}--{seed}.npz"
        if not path.exists():
            given = (side, name, prepared(dataset, args.cifar, args.runs), seed, path, args.scale * SECONDS[dataset])
            running.append(fork.Process(target=one, args=given))
            running[-1].start()
            while len(running) >= args.at_once:
                wait(child.sentinel for child in running)
                running = [child for child in running if child.is_alive()]
    for child in running:
        child.join()
    print(report(args.runs))


if __name__ == "__main__":
    main()
