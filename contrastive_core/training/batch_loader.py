"""Batches of a training set: the epoch's order for all processes, and this one's share of each.

Images are read from the memory map one batch ahead, by a thread, while the step before computes: a
slow disk is waited for once, not in every step. A batch depends on its index alone, so nothing of
the thread has to be saved.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from contrastive_core.data.batch import Batch, BatchShare
from contrastive_core.data.batch_sampler import plan
from contrastive_core.data.datasets import Dataset
from contrastive_core.distributed.collectives import World
from contrastive_core.distributed.partition import part_of

__all__ = ["BatchLoader"]

ON_DEVICE = 4 << 30  # bytes of images that are moved to a GPU once, instead of batch by batch


class _Read(NamedTuple):
    """A batch in memory: `images` is None where they are on the device."""

    images: Tensor | None
    labels: Tensor
    rows: Tensor
    share: BatchShare


@dataclass(frozen=True, eq=False)
class BatchLoader:
    """The batches of every epoch: a pure function of seed and epoch, with no state to save."""

    dataset: Dataset
    kind: str  # a kind of data/batch_sampler.py
    batch_size: int
    seed: int
    device: torch.device
    world: World
    resident: Tensor | None  # all images (n, c, h, w) uint8 on the device, where they fit

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        kind: str,
        batch_size: int,
        seed: int,
        device: torch.device,
        world: World,
    ) -> BatchLoader:
        """A loader that keeps few images on a GPU; on the CPU a memory map is as good."""
        resident = None
        if device.type != "cpu" and dataset.images.size <= ON_DEVICE:
            resident = torch.from_numpy(np.array(dataset.images)).to(device)
        return cls(dataset, kind, batch_size, seed, device, world, resident)

    def epoch(self, epoch: int) -> list[np.ndarray]:
        """Indices of each global batch of an epoch, the same on every process."""
        return plan(self.kind, self.dataset.labels, self.batch_size, self.seed, epoch)

    def batch(self, index: np.ndarray) -> Batch:
        """This process's share of the global batch at `index`, on the device."""
        return self._on_device(self._read(index))

    def batches(self, indices: Sequence[np.ndarray]) -> Generator[Batch, None, None]:
        """`batch` of each of `indices`, whose images a thread reads while the batch before is used.

        What goes wrong in the thread is raised where its batch is asked for. The thread ends with
        the last batch, or when the generator is closed.
        """
        if self.resident is not None:
            yield from map(self.batch, indices)
            return
        with ThreadPoolExecutor(1, "next-batch") as thread:
            ahead = None
            for index, following in zip(indices, [*indices[1:], None], strict=False):
                read = ahead.result() if ahead else self._read(index)
                ahead = None if following is None else thread.submit(self._read, following)
                yield self._on_device(read)

    def _read(self, index: np.ndarray) -> _Read:
        """This process's share of the global batch at `index`."""
        rows = part_of(len(index), (self.world.rank, self.world.size))
        local_rows = index[rows]
        return _Read(
            None if self.resident is not None else self._pinned(self.dataset.images[local_rows]),
            self._pinned(self.dataset.labels[local_rows]),
            self._pinned(local_rows),
            BatchShare(rows.start, rows.stop, len(index)),
        )

    def _pinned(self, array: np.ndarray) -> Tensor:
        """As a tensor; for CUDA in pages that stay in place, from which a copy to the GPU waits for
        nothing: not for the step before, either."""
        tensor = torch.from_numpy(array)
        if self.device.type != "cuda":
            return tensor
        with torch.cuda.device(self.device):  # a thread begins with the first GPU
            return tensor.pin_memory()

    def _on_device(self, read: _Read) -> Batch:
        def copied(tensor: Tensor) -> Tensor:
            return tensor.to(self.device, non_blocking=self.device.type == "cuda")

        index = copied(read.rows)
        if self.resident is not None:
            images = self.resident[index]
        else:
            assert read.images is not None
            images = copied(read.images)
        return Batch(images, copied(read.labels), index, read.share)
