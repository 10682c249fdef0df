"""Batches are read one ahead, by a thread that changes nothing and outlives nothing."""

import dataclasses
import threading
from collections.abc import Callable
from contextlib import closing, nullcontext

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


def test_an_error_is_raised_where_its_batch_is_asked_for() -> None:
    def on_read(rows: np.ndarray, name: str) -> None:
        if rows[0] == INDICES[2][0]:
            raise OSError("the disk is gone")

    batches = loader_of(on_read).batches(INDICES)
    assert [next(batches).index[0].item() for _ in range(2)] == [0, 8]
    with pytest.raises(OSError, match="the disk is gone"):
        next(batches)
    assert readers() == []


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


def test_for_cuda_it_is_pinned_by_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tried without a GPU: what would be copied is counted instead."""
    pinned, without_waiting = [], []

    def pin(tensor: torch.Tensor) -> torch.Tensor:
        pinned.append(threading.current_thread().name)
        return tensor

    def copy(tensor: torch.Tensor, device: object, non_blocking: bool = False) -> torch.Tensor:
        without_waiting.append(non_blocking)
        return tensor

    on_gpu = dataclasses.replace(loader_of(lambda rows, name: None), device=torch.device("cuda", 1))
    monkeypatch.setattr("contrastive_core.data.batch_loader.ON_DEVICE", 0)  # as if they were too many for the GPU
    monkeypatch.setattr(torch.cuda, "device", nullcontext)
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "to", copy)
    assert len(list(on_gpu.batches(INDICES[:2]))) == 2
    assert len(pinned) == 6  # images, labels and indices of both
    assert all(name.startswith("next-batch") for name in pinned[3:])
    assert without_waiting == [True] * 6
