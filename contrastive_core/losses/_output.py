"""The output of a loss: a value and a weight per anchor, or, for display, its anatomy: scores, masks and the gradients
of its formula by autograd."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from contrastive_core.ops.similarity import compare, full_precision
from contrastive_core.pairs.types import Masks, Pairs

if TYPE_CHECKING:
    from contrastive_core.losses._base import Loss

Details = dict[str, Any]  # further matrices, vectors and figures of an anatomy


@dataclass(frozen=True, eq=False)
class LossOutput:
    """A loss per anchor. `value = (weight · per_anchor).sum() / weight.sum()`, literally.

    An anchor with an undefined loss has weight 0 and loss 0. If none is defined, `value`
    is 0, still attached to the graph, and `n_valid` is 0."""

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


@dataclass(frozen=True, eq=False)
class Anatomy:
    """The terms of a loss for display, as dense matrices (n, w) over anchors × width; all tensors are detached.

    `scores` are the compared values (similarity or distance, see `score_kind`).
    `weight` is the weight of each pair (softmax probability, or 0/1 for an active hinge).
    `grad_scores[i, j]` is ∂L_i/∂score_ij; `grad_anchors`/`grad_candidates` are ∂value/∂embedding."""

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
    extras: Details = field(default_factory=dict)


def dissect(loss: Loss, pairs: Pairs) -> Anatomy:
    """Return the anatomy of a loss on these pairs. Raises ValueError if the loss cannot use them."""
    if problem := loss.check(pairs):
        raise ValueError(problem)
    anchors = pairs.anchors.detach().clone().requires_grad_()
    same = pairs.candidates is pairs.anchors
    candidates = anchors if same else pairs.candidates.detach().clone().requires_grad_()
    pairs = pairs.with_rows(anchors, candidates)
    output = loss(pairs)
    grads = torch.autograd.grad(output.value, [anchors, candidates], allow_unused=True)
    g_anchors, g_candidates = (
        torch.zeros_like(z) if g is None else g for g, z in zip(grads, (anchors, candidates), strict=True)
    )
    with full_precision(anchors.device):
        unit = loss.rows(pairs)
        scores, masks = compare(unit, loss.score).detach(), unit.masks()
        weight, g_scores, details = torch.zeros_like(scores), torch.zeros_like(scores), {}
        if scores.numel():
            g_scores = score_gradient(loss, scores, masks, unit)
            weight = loss.pair_weight(scores, masks, unit).detach()
            details = loss.details(scores, masks, unit)
    return Anatomy(
        score_kind=loss.score,
        scores=scores,
        positive=masks.positive,
        negative=masks.negative,
        self_pair=masks.self_pair,
        weight=weight,
        grad_scores=g_scores,
        grad_anchors=g_anchors,
        grad_candidates=g_candidates,
        output=LossOutput(output.per_anchor.detach(), output.weight.detach(), output.extras),
        extras={**output.extras, **details},
    )


def score_gradient(loss: Loss, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
    """Return ∂L_i/∂score_ij (n, w); 0 for anchors with an undefined loss."""
    leaf = scores.clone().requires_grad_()
    with torch.enable_grad():
        value, weight = loss.per_anchor(leaf, masks, pairs)
        total = torch.where(weight > 0, value, 0.0).sum()
        (grad,) = torch.autograd.grad(total, leaf, allow_unused=True)
    return torch.zeros_like(scores) if grad is None else grad
