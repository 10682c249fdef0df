"""Batches of a training set: the order of an epoch for all processes, and the share of this process. A thread reads the
images from the memory map one batch ahead, while the previous step computes, so training rarely waits for a slow disk.
A batch depends on its index alone, so the thread has no state to save."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.memory import part_of
from contrastive_core.data.dataset import Captions
from contrastive_core.data.datasets import Dataset
from contrastive_core.ops.collectives import World

ON_DEVICE = 4 << 30  # bytes of images that are copied to a GPU once, not batch by batch
SMALLEST = 2  # a batch of one has nothing to compare
PLANS = ("shuffled", "class_balanced", "n_pair", "lifted")  # kinds of batches


@dataclass(frozen=True)
class BatchShare:
    """The rows `start` to `stop` of a global batch of `total` rows, which belong to one process. Every process samples
    random values for the global batch from the same generator and uses its own rows, so a seed gives the same run with
    any number of processes."""

    start: int
    stop: int
    total: int

    @classmethod
    def whole(cls, n: int) -> BatchShare:
        """Return the share of a single process: all of n rows."""
        return cls(0, n, n)

    @property
    def rows(self) -> slice:
        """The slice of this process's rows in values sampled for the global batch."""
        return slice(self.start, self.stop)

    def times(self, k: int) -> BatchShare:
        """Return the share with each row repeated as k adjacent rows, such as views or patches."""
        return BatchShare(k * self.start, k * self.stop, k * self.total)


@dataclass(frozen=True)
class Batch:
    """A training batch: uint8 images, labels (−1: none), indices, its share of the global batch (None: all), and the
    captions of its images if the data set has captions."""

    images: UInt8[Tensor, "b c h w"]
    labels: Int[Tensor, " b"]
    index: Int[Tensor, " b"]
    share: BatchShare | None = None
    captions: Captions | None = None

    def part(self, start: int, stop: int) -> Batch:
        """Return a slice of the batch, with its position in the global batch."""
        rows, share = slice(start, stop), self.global_rows
        share = BatchShare(share.start + start, share.start + stop, share.total)
        captions = self.captions and self.captions.take(np.arange(start, stop))
        return Batch(self.images[rows], self.labels[rows], self.index[rows], share, captions)

    def draw_captions(self, generator: torch.Generator) -> list[str]:
        """Sample one caption per image. The sample does not depend on the number of processes."""
        assert self.captions is not None
        share = self.global_rows
        u = torch.rand(share.total, generator=generator, device=generator.device)[share.rows].cpu().numpy()
        first, last = self.captions.bounds(np.arange(len(u)))
        chosen = np.minimum((u * (last - first)).astype(np.int64), last - first - 1)
        return [self.captions.texts[k] for k in first + chosen]

    @property
    def global_rows(self) -> BatchShare:
        """The rows of this batch in the global batch."""
        return self.share or BatchShare.whole(len(self.images))


@dataclass(frozen=True, eq=False)
class BatchLoader:
    """Loader of the batches of every epoch: a pure function of seed and epoch, with no state to save."""

    dataset: Dataset
    kind: str  # one of PLANS
    batch_size: int
    seed: int
    device: torch.device
    world: World

    @cached_property
    def resident(self) -> Tensor | None:
        """All images (n, c, h, w) uint8 on the GPU if they fit; None on the CPU, where a memory map is as fast."""
        if self.device.type == "cpu" or self.dataset.images.size > ON_DEVICE:
            return None
        return torch.from_numpy(np.array(self.dataset.images)).to(self.device)

    def epoch(self, epoch: int) -> list[np.ndarray]:
        """Return the indices of each global batch of an epoch, equal on every process."""
        return plan(self.kind, self.dataset.labels, self.batch_size, self.seed, epoch)

    def batch(self, index: np.ndarray) -> Batch:
        """Return this process's share of the global batch at `index`, on the device."""
        return self._on_device(self._read(index))

    def batches(self, indices: Sequence[np.ndarray]) -> Generator[Batch, None, None]:
        """Yield the batch for each of `indices`; a thread reads the next images while the current batch is used.

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
        """Return this process's share of the global batch at `rows`, on the device that stores the images."""
        local = part_of(len(rows), (self.world.rank, self.world.size))
        mine = rows[local]
        index = self._pinned(mine)
        images = self._pinned(self.dataset.images[mine]) if self.resident is None else self.resident[self._moved(index)]
        share = BatchShare(local.start, local.stop, len(rows))
        captions = self.dataset.captions and self.dataset.captions.take(mine)
        return Batch(images, self._pinned(self.dataset.labels[mine]), index, share, captions)

    def _pinned(self, array: np.ndarray) -> Tensor:
        """Return an array as a tensor; for CUDA in pinned memory, which is copied to the GPU asynchronously."""
        tensor = torch.from_numpy(array)
        if self.device.type != "cuda":
            return tensor
        with torch.cuda.device(self.device):  # a new thread uses the first GPU
            return tensor.pin_memory()

    def _moved(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, non_blocking=self.device.type == "cuda")

    def _on_device(self, batch: Batch) -> Batch:
        images, labels, index = map(self._moved, (batch.images, batch.labels, batch.index))
        return Batch(images, labels, index, batch.share, batch.captions)


def plan(kind: str, labels: np.ndarray, batch_size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Return the index arrays of one epoch's batches, equal for equal arguments.

    Args:
        kind: "shuffled": a permutation cut into batches, without a last batch below half the size; "class_balanced":
            per batch √batch_size classes (at least 2) with equally many images; "n_pair": per batch one pair of images
            from each of many classes; "lifted": groups of four, a random pair of one class and two random images, of
            which the method keeps the hardest negatives (Song et al. 2016, arXiv 1511.06452).
        labels: (n), −1 for none; used by the balanced kinds only.
    Raises: ValueError for an unknown kind, or for labels that the kind cannot use."""
    rng, size, n = np.random.default_rng([seed, epoch]), min(batch_size, len(labels)), len(labels)
    if kind == "shuffled":
        order = rng.permutation(n)
        batches = [order[i : i + size] for i in range(0, n, size)]
        return batches[:-1] if len(batches) > 1 and len(batches[-1]) < max(SMALLEST, size // 2) else batches
    if kind not in PLANS:
        raise BadSetting("unknown kind of batch {kind}; known: {plans}", kind=f"{kind!r}", plans=", ".join(PLANS))
    decks = _decks(labels, rng)
    if kind == "lifted":
        return _lifted_batches(labels, size, decks, rng)
    if kind == "n_pair":
        classes, images = min(len(decks), max(2, size // 2)), 2
        count = n // (2 * classes)
    else:
        classes, count = min(len(decks), max(2, round(size**0.5))), n // size
        images = max(2, size // classes)
    turn = _Deck(np.array(list(decks)), rng)  # every class and image is used once before it is used again
    chosen = (turn.draw(classes) for _ in range(max(1, count)))
    return [np.concatenate([decks[c].draw(min(images, len(decks[c].items))) for c in some]) for some in chosen]


def _lifted_batches(
    labels: np.ndarray, size: int, decks: dict[int, _Deck], rng: np.random.Generator
) -> list[np.ndarray]:
    usable = np.flatnonzero(np.isin(labels, list(decks)))
    index_batches = []
    for _ in range(max(1, len(labels) // size)):
        count = max(1, min(size, len(usable)) // 4)
        drawn = rng.choice(labels[usable], count)  # classes in proportion to their images
        deck_counts = [(decks[c], 2 * k) for c, k in zip(*np.unique(drawn, return_counts=True), strict=True)]
        pairs = np.concatenate([deck.draw(min(int(k), len(deck.items) // 2 * 2)) for deck, k in deck_counts])
        others = rng.choice(np.setdiff1d(usable, pairs), len(pairs), replace=False)
        index_batches.append(np.hstack([pairs.reshape(-1, 2), others.reshape(-1, 2)]).ravel())
    return index_batches


class _Deck:
    """Sampler of distinct items without replacement, which reshuffles when too few are left."""

    def __init__(self, items: np.ndarray, rng: np.random.Generator) -> None:
        self.items, self.rng = items, rng
        self.remaining = rng.permutation(items)

    def draw(self, k: int) -> np.ndarray:
        drawn, self.remaining = self.remaining[:k], self.remaining[k:]
        if len(drawn) < k:
            fresh = self.rng.permutation(np.setdiff1d(self.items, drawn))
            need = k - len(drawn)
            drawn, self.remaining = np.concatenate([drawn, fresh[:need]]), fresh[need:]
        return drawn


def _decks(labels: np.ndarray, rng: np.random.Generator) -> dict[int, _Deck]:
    """Return a deck of images for each class with at least two. Raises BadSetting for fewer than two such classes."""
    classes, counts = np.unique(labels[labels >= 0], return_counts=True)
    usable = classes[counts >= 2]
    if len(usable) < 2:
        values = {"least": 2, "usable": len(usable)}
        raise BadSetting(
            "balanced batches need two classes with at least {least} images each; only {usable} have that many",
            **values,
        )
    return {int(c): _Deck(np.flatnonzero(labels == c), rng) for c in usable}
