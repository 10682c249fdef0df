"""An epoch's sums of losses and gradient norms, kept on the device: adding waits for nothing.

A sum that is not finite stays so. Whoever reads it therefore learns of every step that was taken,
though it looks at few of them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from contrastive_core.distributed.collectives import all_reduce_sum

__all__ = ["EpochTotals"]


class EpochTotals:
    """Sums over the steps of the present epoch, of this process's part of the loss."""

    def __init__(self, device: torch.device) -> None:
        exact = torch.float32 if device.type == "mps" else torch.float64  # MPS has no float64
        self.sums = torch.zeros(3, dtype=exact, device=device)  # losses, gradient norms, steps

    def add(self, loss: Tensor, norm: Tensor) -> None:
        """Count one step. `loss`: this process's part; `norm`: the same on every process."""
        self.sums += torch.stack([loss.detach(), norm.detach(), torch.ones_like(norm)]).to(
            self.sums
        )

    def of_all_processes(self) -> Tensor:
        """(3,): the losses summed over all processes; norms and steps. All call it together."""
        return torch.cat([all_reduce_sum(self.sums[:1]), self.sums[1:]])

    def mean_loss(self) -> float:
        """The mean loss of the epoch's steps. All processes call it together."""
        loss, _, steps = self.of_all_processes().tolist()
        return loss / max(1.0, steps)  # type: ignore[no-any-return]

    def not_finite(self) -> tuple[float, float] | None:
        """The sums, if one of them is no longer finite. All processes call it together."""
        loss, norm, _ = self.of_all_processes().tolist()
        return None if math.isfinite(loss) and math.isfinite(norm) else (loss, norm)

    def restore(self, sums: Tensor, is_rank0: bool) -> None:
        """Go on from sums that were saved: the losses' lies on one process, the rest on each."""
        self.sums.copy_(sums)
        if not is_rank0:
            self.sums[0] = 0

    def clear(self) -> None:
        """Begin a new epoch."""
        self.sums.zero_()
