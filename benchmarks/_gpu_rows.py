"""Rows of the GPU's table, and what its parts share."""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable
from typing import NamedTuple

import torch

from benchmarks._training import synchronize
from contrastive_core.data.dataset import Dataset
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train.setup import TrainSetup, prepare

__all__ = ["Row", "line", "setup_of", "timed"]


class Row(NamedTuple):
    """A figure of ours, and the peer's; None where there is none."""

    work: str
    unit: str
    ours: float | None
    peer: str = ""
    theirs: float | None = None
    note: str = ""


def setup_of(args: argparse.Namespace, dataset: Dataset | None = None, **changed: object) -> TrainSetup:
    """What a training with this method's defaults needs."""
    config = TrainConfig(
        args.method,
        f"folder:{args.images}",
        epochs=args.epochs,
        batch_size=args.batch,
        encoder=args.encoder,
        training_recipe=args.recipe,
        device=args.device,
    )
    return prepare(dataclasses.replace(config, **changed), dataset=dataset)  # type: ignore[arg-type]


def timed(device: torch.device, work: Callable[[], object]) -> float:
    """Seconds until the device has done it."""
    start = time.perf_counter()
    work()
    synchronize(device)
    return time.perf_counter() - start


def cell(row: Row, value: float | None) -> str:
    return "–" if value is None else f"{value:,.4g} {row.unit}"


def line(row: Row) -> str:
    """A row of the table; `ratio`: how many times as good ours is, of accuracies the difference."""
    ratio = ""
    if row.ours and row.theirs:
        if row.unit == "%":
            ratio = f"{row.ours - row.theirs:+.1f}"
        else:
            ratio = f"{row.ours / row.theirs if row.unit == 'images/s' else row.theirs / row.ours:.2f}×"
    peer = f"{row.peer} {cell(row, row.theirs)}" if row.peer else ""
    return f"| {row.work} | {cell(row, row.ours)} | {peer} | {ratio} | {row.note} |"
