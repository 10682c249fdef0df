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
        self.sums = torch.zeros(2, dtype=exact, device=device)  # losses, gradient norms

    def add(self, loss: Tensor, norm: Tensor) -> None:
        """Count one step. `loss`: this process's part; `norm`: the same on every process."""
        self.sums += torch.stack([loss.detach(), norm.detach()]).to(self.sums)

    def of_all_processes(self) -> Tensor:
        """(2,): the losses summed over all processes, and the norms. All call it together."""
        return torch.cat([all_reduce_sum(self.sums[:1]), self.sums[1:]])

    def mean_loss(self, steps: int) -> float:
        """The epoch's mean loss after `steps` steps. All processes call it together."""
        return float(self.of_all_processes()[0]) / max(1, steps)

    def not_finite(self) -> tuple[float, float] | None:
        """The sums, if one of them is no longer finite. All processes call it together."""
        loss, norm = self.of_all_processes().tolist()
        return None if math.isfinite(loss) and math.isfinite(norm) else (loss, norm)

    def restore(self, sums: Tensor) -> None:
        """Go on from sums that were saved."""
        self.sums.copy_(sums)

    def clear(self) -> None:
        """Begin a new epoch."""
        self.sums.zero_()
