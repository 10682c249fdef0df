"""Samples left out of a training set: the others are read by index, none is copied before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from contrastive_core.data import datasets, overrides
from contrastive_core.distributed.collectives import World
from contrastive_core.training.batch_loader import BatchLoader


def test_the_rows_that_stay_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    every = datasets.load("digits")
    gone = tmp_path / "gone.txt"
    gone.write_text("\n".join(every.ids[::3]))
    copied = overrides.curated(every, str(gone), None)
    indexed = overrides.curated(every, str(gone), None, by_index=True)
    assert isinstance(copied.images, np.ndarray)
    assert isinstance(indexed.images, overrides.Rows)
    assert indexed.images.images is every.images  # the memory map itself
    assert indexed.images.shape == copied.images.shape
    assert indexed.images.size == copied.images.size
    assert np.array_equal(np.asarray(indexed.images), copied.images)
    for rows in (np.array([5, 1, 7]), slice(2, 9), 3):
        assert np.array_equal(indexed.images[rows], copied.images[rows])
    batches = [
        BatchLoader.of(d, "shuffled", 8, 0, torch.device("cpu"), World(0, 1, 0, 1)).batch(
            np.array([9, 4, 100])
        )
        for d in (indexed, copied)
    ]
    assert torch.equal(batches[0].images, batches[1].images)
    assert torch.equal(batches[0].labels, batches[1].labels)
