"""Batches are read one ahead, by a thread that changes nothing and outlives nothing."""

import dataclasses
import threading
from collections.abc import Callable
from contextlib import closing

import numpy as np
import pytest
import torch

from contrastive_core import runs
from contrastive_core.base.errors import CannotGoOn
from contrastive_core.data import datasets
from contrastive_core.data.batch_loader import BatchLoader
from contrastive_core.ops.collectives import World
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train import loop
from contrastive_core.train.setup import TrainSetup, prepare

PATIENCE = 60.0  # seconds for what happens at once
SHORT = TrainConfig("sup_con", "digits", epochs=2, device="cpu", threads=1, batch_size=256)
INDICES = [np.arange(i, i + 8) for i in range(0, 40, 8)]


class Images:
    """An array of images that tells of each reading: its rows, and the thread's name."""

    def __init__(self, images: np.ndarray, on_read: Callable[[np.ndarray, str], None]) -> None:
        self.images, self.on_read = images, on_read
        self.shape, self.size, self.dtype = images.shape, images.size, images.dtype

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        self.on_read(rows, threading.current_thread().name)
        return self.images[rows]


def loader_of(on_read: Callable[[np.ndarray, str], None]) -> BatchLoader:
    digits = datasets.load("digits")
    told = dataclasses.replace(digits, images=Images(digits.images, on_read))
    return BatchLoader(told, "shuffled", 8, 0, torch.device("cpu"), World(0, 1, 0, 1))


def readers() -> list[str]:
    """Threads that read ahead now."""
    return [t.name for t in threading.enumerate() if t.name.startswith("next-batch")]


def test_the_next_batch_is_read_while_this_one_is_used() -> None:
    second_is_read, names = threading.Event(), []

    def on_read(rows: np.ndarray, name: str) -> None:
        names.append(name)
        if rows[0] == INDICES[1][0]:
            second_is_read.set()

    with closing(loader_of(on_read).batches(INDICES)) as batches:
        assert next(batches).index.tolist() == INDICES[0].tolist()
        assert second_is_read.wait(PATIENCE)  # nobody has asked for it yet
        assert len(names) == 2  # one ahead, not more
        assert len(readers()) == 1
    assert names[1].startswith("next-batch")
    assert readers() == []  # although batches were left


def test_it_reads_what_is_read_without_it() -> None:
    loader = loader_of(lambda rows, name: None)
    for ahead, index in zip(loader.batches(INDICES), INDICES, strict=True):
        batch = loader.batch(index)
        for name in ("images", "labels", "index"):
            assert torch.equal(getattr(ahead, name), getattr(batch, name)), name
        assert ahead.share == batch.share
    assert readers() == []
    assert list(loader.batches([])) == []


def training(on_read: Callable[[np.ndarray, str], None]) -> TrainSetup:
    setup = prepare(SHORT)
    images = Images(setup.dataset.images, on_read)
    told = dataclasses.replace(setup.dataset, images=images)
    return dataclasses.replace(setup, loader=dataclasses.replace(setup.loader, dataset=told))


def test_a_training_ends_with_the_threads_error_and_leaves_no_thread() -> None:
    read = []

    def on_read(rows: np.ndarray, name: str) -> None:
        read.append(name)
        if len(read) == 3:
            raise OSError("the disk is gone")

    setup = training(on_read)
    run = runs.create("gone", setup.config.to_dict())
    with pytest.raises(CannotGoOn, match="the disk is gone"):
        loop.train(setup, run)
    assert run.status()["reason"] == "the disk is gone"
    assert [x["step"] for x in run.metrics()] == [1, 2]  # the batches before it were trained on
    assert readers() == []
