"""The rows of one embedding, all in this process or a part in each of many.

A score that is written with these few sums and meetings is the same figure either way: `HERE`
leaves everything as it is, `SPREAD` reaches over all processes (torchrun's, see distributed.py),
and each holds only its own rows. What has one value per row, such as labels and predictions, is
small and is made whole; the vectors never are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from contrastive_core.distributed import collectives

__all__ = ["HERE", "SPREAD", "Rows"]


@dataclass(frozen=True)
class Rows:
    """How rows lie. Every method is called by all processes alike, or they wait for each other."""

    spread: bool = False

    def number(self, n: int) -> int:
        """The sum of a count over the parts."""
        return sum(self.each(n))

    def each(self, value: Any) -> list[Any]:
        """A small value of every part, in their order."""
        return collectives.all_gather_object(value) if self.spread else [value]

    def start(self, n: int) -> int:
        """The number, in the whole, of this part's first row; n: its rows."""
        return sum(self.each(n)[: dist.get_rank()]) if self._many else 0

    def total(self, x: Tensor) -> Tensor:
        """The sum of `x` over the parts."""
        return collectives.all_reduce_sum(_there(x)).to(x.device) if self._many else x

    def whole(self, x: np.ndarray) -> np.ndarray:
        """The rows (n, …) of all parts, in order, on every process."""
        if not self._many:
            return x
        mine = torch.from_numpy(np.ascontiguousarray(x))
        return collectives.all_gather(_there(mine)).cpu().numpy()

    def blocks(self, x: Tensor, size: int) -> Iterator[tuple[int, Tensor]]:
        """At most `size` rows at a time, with the number of their first: each process sends its
        own in turn, so that no process ever holds more than one block of another's."""
        if not self._many:
            yield from ((i, x[i : i + size]) for i in range(0, len(x), size))
            return
        start = 0
        for rank, n in enumerate(self.each(len(x))):
            for i in range(0, n, size):
                is_sender = dist.get_rank() == rank
                part = x[i : i + size] if is_sender else x.new_empty(min(size, n - i), *x.shape[1:])
                part = _there(part.contiguous())
                dist.broadcast(part, rank)
                yield start + i, part.to(x.device)
            start += n

    @property
    def _many(self) -> bool:
        return self.spread and not collectives.is_single_process()


HERE, SPREAD = Rows(), Rows(True)


def _there(x: Tensor) -> Tensor:
    """Where messages are made: NCCL moves only what lies on the GPU."""
    return x.cuda() if dist.get_backend() == "nccl" else x
