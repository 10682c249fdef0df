"""Trainings on a GPU: with labels, by a method, as lightly's benchmark has it, and on files compressed once more."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np
import torch

from benchmarks._gpu_labels import PUBLISHED, accuracy_with_labels, recompressed
from benchmarks._gpu_rows import Row, setup_of, timed
from benchmarks._lightly import PeerSimCLR, PublishedResNet, peer_batches
from benchmarks._training import rows_of
from contrastive_core import runs
from contrastive_core.base.device import choose
from contrastive_core.data import datasets
from contrastive_core.data.dataset import Dataset
from contrastive_core.metrics import create
from contrastive_core.train.loop import train
from contrastive_core.train.optim import learning_rate, set_learning_rate
from contrastive_core.train.setup import TrainSetup

__all__ = ["labels", "lightly", "recompressed_files", "training"]

K, VOTE_TAU = 200, 0.1  # of lightly's kNN


def splits(args: argparse.Namespace) -> tuple[Dataset, Dataset]:
    train, test = (datasets.load(f"folder:{args.images}", split) for split in ("train", "test"))
    return train, test


def labels(args: argparse.Namespace) -> Iterator[Row]:
    yield from of_labels(args, *splits(args), "")


def of_labels(args: argparse.Namespace, train: Dataset, test: Dataset, said: str) -> Iterator[Row]:
    """Accuracy with labels on these files, and the published one on the original images."""
    device = choose(args.device)
    start = time.perf_counter()
    found = accuracy_with_labels(train, test, args.encoder, args.label_epochs, args.label_batch, device)
    note = f"{time.perf_counter() - start:.0f} s"
    name = f"{args.encoder} with labels, {args.label_epochs} epochs{said}: accuracy"
    yield Row(name, "%", found, "published, original images", PUBLISHED, note)


def training(args: argparse.Namespace) -> Iterator[Row]:
    yield from of_training(args, None, datasets.load(f"folder:{args.images}", "test"), "")


def of_training(args: argparse.Namespace, train_set: Dataset | None, test: Dataset, said: str) -> Iterator[Row]:
    """Seconds and scores of a run."""
    setup = setup_of(args, train_set)
    run = runs.create(f"gpu-{args.method}{said.replace(' ', '-')}", setup.config.to_dict())
    name = f"{about(args, setup)}{said}"
    yield Row(name, "s", timed(setup.device, lambda: train(setup, run)), note=f"recipe {setup.config.training_recipe}")
    for score, value in scores_of(args, setup.method.encoder, setup, test):
        yield Row(f"{name}: {score}", "%", value)


def lightly(args: argparse.Namespace) -> Iterator[Row]:
    """Seconds and scores of lightly's benchmark."""
    setup = setup_of(args, method="simclr")
    torch.manual_seed(setup.config.seed)
    backbone = PublishedResNet().to(memory_format=torch.channels_last)
    peer = PeerSimCLR(backbone, setup.method.settings).to(setup.device)
    name, peers = about(args, setup), "lightly"
    yield Row(name, "s", None, peers, timed(setup.device, lambda: train_peer(peer, setup, args.workers)))
    test = datasets.load(f"folder:{args.images}", "test")
    for score, value in scores_of(args, peer.backbone, setup, test):
        yield Row(f"{name}: {score}", "%", None, peers, value)


def recompressed_files(args: argparse.Namespace) -> Iterator[Row]:
    train, test = (recompressed(data, args.quality) for data in splits(args))
    said = f" at quality {args.quality}"
    yield from of_labels(args, train, test, said)
    yield from of_training(args, train, test, said)


def about(args: argparse.Namespace, setup: TrainSetup) -> str:
    return f"{setup.config.method}, {args.encoder}, {setup.config.epochs} epochs of {len(setup.dataset):,} images"


def train_peer(peer: PeerSimCLR, setup: TrainSetup, workers: int) -> None:
    """lightly's loop with its optimizer, which decays every weight, at our batch, rate, schedule and precision."""
    config, device = setup.config, setup.device
    optimizer = torch.optim.SGD(
        peer.parameters(), config.lr or 0, config.momentum, weight_decay=config.weight_decay or 0
    )
    pictures = np.asarray(setup.dataset.images)
    batches = peer_batches(pictures, setup.method.recipe, config.batch_size or 0, workers)
    steps = len(setup.loader.epoch(0)) * config.epochs
    peer.train()
    for step in range(steps):
        set_learning_rate(optimizer, learning_rate(step, steps, config.lr or 0, config.schedule or ""))
        x0, x1 = (x.to(device, non_blocking=True) for x in next(batches))
        with torch.autocast(device.type, torch.bfloat16, enabled=bool(config.amp)):
            loss = peer.loss(x0, x1, step / steps)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()


def scores_of(
    args: argparse.Namespace, encoder: torch.nn.Module, setup: TrainSetup, test: Dataset
) -> Iterator[tuple[str, float]]:
    """Per cent right of the test images by h, in evaluation mode and float32."""
    rows, tested = (rows_of(encoder, data, setup.device) for data in (setup.dataset, test))
    knobs = {"knn": {"k": min(K, len(rows)), "temperature": VOTE_TAU}}
    for score in args.scores:
        yield score, 100 * float(create(score, **knobs.get(score, {}))(rows, tested).value or 0)
