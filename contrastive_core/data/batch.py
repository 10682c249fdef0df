"""A training batch: this process's images, and which rows of the global batch they are."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Int, UInt8
from torch import Tensor

__all__ = ["Batch", "BatchShare"]


@dataclass(frozen=True)
class BatchShare:
    """Rows `start` to `stop` of a global batch of `total` rows: one process's share of it.

    What is drawn at random is drawn for the global batch on every process, from the same
    generator, and each takes its own rows: so one seed gives one run, however many processes.
    """

    start: int
    stop: int
    total: int

    @classmethod
    def whole(cls, n: int) -> BatchShare:
        """All of n rows: one process."""
        return cls(0, n, n)

    @property
    def rows(self) -> slice:
        """This process's rows of what was drawn for the global batch."""
        return slice(self.start, self.stop)

    def times(self, k: int) -> BatchShare:
        """The share where each row stands for k rows side by side: views, or patches."""
        return BatchShare(k * self.start, k * self.stop, k * self.total)


@dataclass(frozen=True)
class Batch:
    """A training batch as the loader yields it: uint8 images, labels (-1: none), indices.

    `share`: which rows of the global batch these are; None: all of them.
    """

    images: UInt8[Tensor, "b c h w"]
    labels: Int[Tensor, " b"]
    index: Int[Tensor, " b"]
    share: BatchShare | None = None

    @property
    def global_rows(self) -> BatchShare:
        """Its rows in the global batch."""
        return self.share or BatchShare.whole(len(self.images))
