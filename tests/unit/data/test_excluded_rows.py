"""Samples left out of a training set: the others are read by index, none is copied before."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from contrastive_core import runs
from contrastive_core.base.storage import SHIPPED
from contrastive_core.compare import embed
from contrastive_core.data import datasets, overrides
from contrastive_core.data.batch_loader import BatchLoader
from contrastive_core.lab.batch import load_batch
from contrastive_core.lab.lab_view import BatchRequest
from contrastive_core.ops.collectives import World
from contrastive_core.samples import run_samples as sample_build


class Watched:
    """In place of a memory map of images: keeps how many bytes were read at once, at most."""

    def __init__(self, images: np.ndarray) -> None:
        self.images, self.most = images, 0
        self.shape, self.dtype, self.ndim, self.size = (images.shape, images.dtype, images.ndim, images.size)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, rows: Any) -> np.ndarray:
        found = np.asarray(self.images[rows])
        self.most = max(self.most, found.nbytes)
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise AssertionError("all images are read into memory")


def test_the_rows_that_stay_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    every = datasets.load("digits")
    gone = tmp_path / "gone.txt"
    gone.write_text("\n".join(every.ids[::3]))
    indexed = overrides.curated(every, str(gone), None)
    keep = np.arange(len(every)) % 3 > 0
    copied = dataclasses.replace(indexed, images=every.images[keep])
    assert isinstance(indexed.images, overrides.ImageRows)
    assert indexed.images.images is every.images  # the memory map itself
    assert indexed.images.shape == copied.images.shape
    assert indexed.images.size == copied.images.size
    assert np.array_equal(np.asarray(indexed.images), copied.images)
    parts = [(slice(None), slice(None), slice(None, None, 2)), (0, slice(None), slice(1, 3))]
    for rows in (np.array([5, 1, 7]), slice(2, 9), 3, *parts, (np.array([4, 2]), slice(0, 1))):
        assert np.array_equal(indexed.images[rows], copied.images[rows])
    batches = [
        BatchLoader(d, "shuffled", 8, 0, torch.device("cpu"), World(0, 1, 0, 1)).batch(np.array([9, 4, 100]))
        for d in (indexed, copied)
    ]
    assert torch.equal(batches[0].images, batches[1].images)
    assert torch.equal(batches[0].labels, batches[1].labels)


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[runs.Run, Watched]:
    """A run without one of its training images, which are read through `Watched`."""
    digits = datasets.load("digits", "train")
    gone = tmp_path / "gone.txt"
    gone.write_text(digits.ids[0])
    config = {**runs.load("simclr-digits").config, "exclude": str(gone)}
    run = runs.create("fewer", config)
    shutil.copy(SHIPPED / "simclr-digits" / "weights.safetensors", run.weights)
    images = Watched(digits.images)
    monkeypatch.setattr(embed, "data_of", lambda run, split: dataclasses.replace(digits, images=images))
    monkeypatch.setattr(sample_build, "data_of", lambda run, split: dataclasses.replace(digits, images=images))
    monkeypatch.setattr("contrastive_core.lab.batch.data_of", lambda *_: dataclasses.replace(digits, images=images))
    monkeypatch.setattr(embed, "CHUNK", 100)
    return run, images


def test_samples_read_no_copy_of_all_images(watched: tuple[runs.Run, Watched], monkeypatch: pytest.MonkeyPatch) -> None:
    run, images = watched
    dataset, h, z = sample_build.rows_of(run, "train", "cpu")
    assert len(dataset) == len(h) == len(z) == len(images) - 1
    monkeypatch.setattr(sample_build, "MOST", 4 * len(images))  # four pixels of each
    pixels, _ = sample_build.pixel_rows(dataset.images)
    assert np.array_equal(pixels, images.images[1:, 0, ::4, ::4].reshape(-1, 4) / np.float32(255))
    assert images.most <= max(100 * 64, pixels.size)  # of 1,437 · 64


def test_the_loss_lab_reads_no_copy_of_all_images(watched: tuple[runs.Run, Watched]) -> None:
    run, images = watched
    batch = load_batch(run, BatchRequest("z", 8, 2, 0, "queue"))
    assert batch.rows.shape[:2] == (8, 2)
    assert 0 < images.most <= 24 * 64


def test_rows_are_no_copy_where_nothing_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.load("simclr-digits")
    kept = embed.embed_run(run, "test", "h", "cpu")
    monkeypatch.setattr(sample_build, "embed_run", lambda *_: kept)
    _, h, _ = sample_build.rows_of(run, "test", "cpu")
    assert np.shares_memory(h.features, kept.features)
    assert h.content_hash == kept.content_hash
