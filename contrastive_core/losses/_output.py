"""The result of a loss: a value and a weight per anchor."""

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

Details = dict[str, Any]  # further matrices, vectors and figures of an anatomy


@dataclass(frozen=True, eq=False)
class LossOutput:
    """A loss per anchor. `value = (weight · per_anchor).sum() / weight.sum()`, literally.

    An anchor for which the loss is undefined has weight 0 and loss 0; if none is defined, `value`
    is 0, still attached to the graph, and `n_valid` is 0.
    """

    per_anchor: Float[Tensor, " n"]
    weight: Float[Tensor, " n"]
    extras: dict[str, float] = field(default_factory=dict)

    @property
    def value(self) -> Float[Tensor, ""]:
        total = self.weight.sum().clamp_min(torch.finfo(self.weight.dtype).tiny)
        return (self.weight * self.per_anchor).sum() / total

    @property
    def n_valid(self) -> int:
        return int((self.weight > 0).sum())
