"""Batches of a training set: the order of an epoch for all processes, and this process's share of each.

A thread reads the images from the memory map one batch ahead, while the previous step computes, so training does not
wait for a slow disk in every step. A batch depends on its index alone: the thread has no state to save.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from contrastive_core.data.batch_sampler import plan
from contrastive_core.data.datasets import Dataset
from contrastive_core.distributed.collectives import World
from contrastive_core.storage.large_arrays import part_of

ON_DEVICE = 4 << 30  # bytes of images that are moved to a GPU once, instead of batch by batch


@dataclass(frozen=True)
class BatchShare:
    """Rows `start` to `stop` of a global batch of `total` rows: one process's share of it. Every process samples random
    values for the whole global batch from the same generator and takes its own rows: one seed gives one run, with any
    number of processes."""

    start: int
    stop: int
    total: int

    @classmethod
    def whole(cls, n: int) -> BatchShare:
        """All of n rows: one process."""
        return cls(0, n, n)

    @property
    def rows(self) -> slice:
        """This process's rows of values sampled for the global batch."""
        return slice(self.start, self.stop)

    def times(self, k: int) -> BatchShare:
        """The share where each row stands for k rows side by side: views, or patches."""
        return BatchShare(k * self.start, k * self.stop, k * self.total)


@dataclass(frozen=True)
class Batch:
    """A training batch: uint8 images, labels (-1: none), indices, and its share of the global batch (None: all)."""

    images: UInt8[Tensor, "b c h w"]
    labels: Int[Tensor, " b"]
    index: Int[Tensor, " b"]
    share: BatchShare | None = None

    @property
    def global_rows(self) -> BatchShare:
        """Its rows in the global batch."""
        return self.share or BatchShare.whole(len(self.images))


@dataclass(frozen=True, eq=False)
class BatchLoader:
    """The batches of every epoch: a pure function of seed and epoch, with no state to save."""

    dataset: Dataset
    kind: str  # a kind of data/batch_sampler.py
    batch_size: int
    seed: int
    device: torch.device
    world: World

    @cached_property
    def resident(self) -> Tensor | None:
        """All images of a small data set (n, c, h, w) uint8 on the GPU; on the CPU a memory map is as good."""
        if self.device.type == "cpu" or self.dataset.images.size > ON_DEVICE:
            return None
        return torch.from_numpy(np.array(self.dataset.images)).to(self.device)

    def epoch(self, epoch: int) -> list[np.ndarray]:
        """Indices of each global batch of an epoch, the same on every process."""
        return plan(self.kind, self.dataset.labels, self.batch_size, self.seed, epoch)

    def batch(self, index: np.ndarray) -> Batch:
        """This process's share of the global batch at `index`, on the device."""
        return self._on_device(self._read(index))

    def batches(self, indices: Sequence[np.ndarray]) -> Generator[Batch, None, None]:
        """`batch` of each of `indices`; a thread reads its images while the previous batch is used.

        An error in the thread is raised when its batch is requested."""
        if self.resident is not None:
            yield from map(self.batch, indices)
            return
        with ThreadPoolExecutor(1, "next-batch") as thread:
            ahead = None
            for index, following in zip(indices, [*indices[1:], None], strict=False):
                read = ahead.result() if ahead else self._read(index)
                ahead = None if following is None else thread.submit(self._read, following)
                yield self._on_device(read)

    def _read(self, rows: np.ndarray) -> Batch:
        """This process's share of the global batch at `rows`, where its images lie."""
        local = part_of(len(rows), (self.world.rank, self.world.size))
        mine = rows[local]
        index = self._pinned(mine)
        images = self._pinned(self.dataset.images[mine]) if self.resident is None else self.resident[self._moved(index)]
        return Batch(
            images, self._pinned(self.dataset.labels[mine]), index, BatchShare(local.start, local.stop, len(rows))
        )

    def _pinned(self, array: np.ndarray) -> Tensor:
        """The array as a tensor; for CUDA in pinned memory, which is copied to the GPU asynchronously."""
        tensor = torch.from_numpy(array)
        if self.device.type != "cuda":
            return tensor
        with torch.cuda.device(self.device):  # a thread begins with the first GPU
            return tensor.pin_memory()

    def _moved(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, non_blocking=self.device.type == "cuda")

    def _on_device(self, batch: Batch) -> Batch:
        return Batch(self._moved(batch.images), self._moved(batch.labels), self._moved(batch.index), batch.share)
