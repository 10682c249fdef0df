"""What a loss gives: a value and a weight per anchor, and, for display, the loss taken apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

__all__ = ["Anatomy", "LossOutput"]


@dataclass(frozen=True, eq=False)
class LossOutput:
    """A loss per anchor. `value = (weight · per_anchor).sum() / weight.sum()`, literally.

    An anchor for which the loss is undefined has weight 0 and loss 0; if none is defined, `value`
    is 0, still attached to the graph, and `n_valid` is 0.
    """

    per_anchor: Float[Tensor, " n"]
    weight: Float[Tensor, " n"]
    extras: dict[str, Any] = field(default_factory=dict)

    @property
    def value(self) -> Float[Tensor, ""]:
        total = self.weight.sum().clamp_min(torch.finfo(self.weight.dtype).tiny)
        return (self.weight * self.per_anchor).sum() / total

    @property
    def n_valid(self) -> int:
        return int((self.weight > 0).sum())


@dataclass(frozen=True, eq=False)
class Anatomy:
    """A loss taken apart, dense, for display: all tensors detached, (n, w) over anchors × width.

    `scores` is what the loss compares (similarity, or distance; `score_kind` says which).
    `weight` is what the loss puts on each pair (softmax probability, or 0/1 for an active hinge).
    `grad_scores[i, j]` is ∂L_i/∂score_ij; `grad_anchors`/`grad_candidates` are ∂value/∂embedding.
    """

    score_kind: str
    scores: Float[Tensor, "n w"]
    positive: Bool[Tensor, "n w"]
    negative: Bool[Tensor, "n w"]
    self_pair: Bool[Tensor, "n w"]
    weight: Float[Tensor, "n w"]
    grad_scores: Float[Tensor, "n w"]
    grad_anchors: Float[Tensor, "n d"]
    grad_candidates: Float[Tensor, "m d"]
    output: LossOutput
    extras: dict[str, Any] = field(default_factory=dict)
