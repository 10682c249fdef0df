"""The rows of one embedding, all in this process or a part in each of many.

A score written with these few operations is the same figure either way: `HERE` changes nothing,
`SPREAD` communicates between all processes of torchrun (see collectives.py), of which each holds
only its own rows. Arrays with one value per row, such as labels and predictions, are small and are
gathered on every process; the vectors never are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from contrastive_core.distributed import collectives
from contrastive_core.distributed.collectives import message_device


@dataclass(frozen=True)
class Rows:
    """How rows lie. Every method is called by all processes alike, or they wait for each other."""

    spread: bool = False

    @property
    def _are_here(self) -> bool:
        return not self.spread or collectives.is_single_process()

    def number(self, n: int) -> int:
        """The sum of a count over the parts."""
        return sum(self.each(n))

    def each(self, value: Any) -> list[Any]:
        """A small value of every part, in their order."""
        return collectives.all_gather_object(value) if self.spread else [value]

    def start(self, n: int) -> int:
        """The number, in the whole, of this part's first row; n: its rows."""
        return 0 if self._are_here else sum(self.each(n)[: dist.get_rank()])

    def total(self, x: Tensor) -> Tensor:
        """The sum of `x` over the parts."""
        return x if self._are_here else collectives.all_reduce_sum(x.to(message_device())).to(x.device)

    def whole(self, x: np.ndarray) -> np.ndarray:
        """The rows (n, …) of all parts, in order, on every process."""
        if self._are_here:
            return x
        mine = torch.from_numpy(np.ascontiguousarray(x)).to(message_device())
        return collectives.all_gather(mine).cpu().numpy()

    def blocks(self, x: Tensor, size: int) -> Iterator[tuple[int, Tensor]]:
        """At most `size` rows at a time, with the number of their first: each process sends its
        own in turn, so that no process ever holds more than one block of another's."""
        if self._are_here:
            yield from ((i, x[i : i + size]) for i in range(0, len(x), size))
            return
        start = 0
        for rank, n in enumerate(self.each(len(x))):
            for i in range(0, n, size):
                is_sender = dist.get_rank() == rank
                part = x[i : i + size] if is_sender else x.new_empty(min(size, n - i), *x.shape[1:])
                part = part.contiguous().to(message_device())
                dist.broadcast(part, rank)
                yield start + i, part.to(x.device)
            start += n


HERE, SPREAD = Rows(), Rows(True)
