"""What every loss shares: rows in, a value per anchor out, and the same formula taken apart.

A loss writes its formula once, in `per_anchor(scores, masks, pairs)`, over the scores of some
anchors (rows) with their candidates (columns). Scores are made here: rows are brought to float32
or better, normalized where the loss says so, and compared. When the matrix would be large, anchors
are taken in blocks that the backward pass computes again, so that memory grows with m, not n·m.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from contrastive_core.losses._output import Anatomy, LossOutput
from contrastive_core.ops import similarity
from contrastive_core.ops.similarity import deterministic_gather, full_precision
from contrastive_core.pairs.types import Masks, Pairs

__all__ = ["BLOCK", "Loss", "compare", "slice_rows"]

BLOCK = 1 << 21  # scores held at once: 8 MB in float32, and as much for each step of a formula


@dataclass(frozen=True)
class Loss(ABC):
    """A contrastive loss: frozen, its fields are its knobs, it has no state."""

    title: ClassVar[str]
    paper: ClassVar[str]
    year: ClassVar[int]
    formula: ClassVar[str]
    summary: ClassVar[str]
    family: ClassVar[str] = "softmax"  # or "hinge", "other"
    score: ClassVar[str] = "dot"  # or "distance", "squared_distance"
    needs_negative: ClassVar[bool] = False  # undefined for an anchor without negatives

    def __call__(self, pairs: Pairs) -> LossOutput:
        """The loss of every anchor. Sources and weights: see the class.

        Raises: ValueError with the reason when the loss cannot use these pairs.
        """
        if problem := self.check(pairs):
            raise ValueError(problem)
        with full_precision(pairs.anchors.device):
            pairs = self.rows(pairs)
            if len(pairs) and pairs.width:
                value, weight = self.over_blocks(pairs)
            else:
                value = weight = pairs.anchors.new_zeros(len(pairs))
            value = torch.where(weight > 0, value, 0.0)
            if not value.requires_grad:
                value = value + 0 * (pairs.anchors.sum() + pairs.candidates.sum())
            return LossOutput(value, weight, self.extras(value.detach(), weight, pairs))

    @abstractmethod
    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        """Loss and weight (n) of the anchors whose scores (n, w) and masks these are."""

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        """What the loss puts on each pair (n, w), for display."""
        return torch.zeros_like(scores)

    def extras(self, value: Tensor, weight: Tensor, pairs: Pairs) -> dict[str, Any]:
        """Further figures of a batch, detached."""
        return {}

    def details(self, scores: Tensor, masks: Masks, pairs: Pairs) -> dict[str, Any]:
        """Further matrices and vectors of the anatomy, detached."""
        return {}

    def check(self, pairs: Pairs) -> str | None:
        """Why the loss cannot use these pairs, or None."""
        return None

    def kernel(self) -> dict[str, Any] | None:
        """How the browser computes this loss while a knob is dragged; None: it cannot."""
        return None

    def rows(self, pairs: Pairs) -> Pairs:
        """The pairs with rows in float32 or better, unit rows where the loss asks for them."""
        unit = getattr(self, "normalize", False)

        def ready(z: Tensor) -> Tensor:
            z = z if z.dtype == torch.float64 else z.float()
            return similarity.normalize(z) if unit else z

        anchors = ready(pairs.anchors)
        same = pairs.candidates is pairs.anchors
        candidates = anchors if same else ready(pairs.candidates)
        return dataclasses.replace(pairs, anchors=anchors, candidates=candidates)

    def over_blocks(self, pairs: Pairs) -> tuple[Tensor, Tensor]:
        """`per_anchor` over all anchors, in blocks of rows where the whole would be large."""
        values, weights = zip(*self.in_blocks(self._block, pairs), strict=True)
        return torch.cat(values), torch.cat(weights)

    @staticmethod
    def in_blocks(task: Callable[[Tensor, Tensor, Pairs], Any], pairs: Pairs) -> list[Any]:
        """`task(anchors, candidates, pairs)` for blocks of anchors, computed again backward."""
        n, each = len(pairs), pairs.width
        if pairs.columns is not None:
            each *= max(1, pairs.anchors.shape[1] // 8)  # (n, k, d) rows are gathered
        size = max(1, BLOCK // each)
        if n <= size:
            return [task(pairs.anchors, pairs.candidates, pairs)]
        c, rows = pairs.candidates, [slice(i, i + size) for i in range(0, n, size)]
        return [
            checkpoint(task, pairs.anchors[r], c, slice_rows(pairs, r), use_reentrant=False)
            for r in rows
        ]

    def _block(self, anchors: Tensor, candidates: Tensor, pairs: Pairs) -> tuple[Tensor, Tensor]:
        pairs = dataclasses.replace(pairs, anchors=anchors, candidates=candidates)
        return self.per_anchor(compare(pairs, self.score), pairs.masks(), pairs)

    def anatomy(self, pairs: Pairs) -> Anatomy:
        """The loss taken apart, dense, for up to about 1,000 rows.

        Scores and their gradients (n, w) come from the same formula by autograd.
        """
        if problem := self.check(pairs):
            raise ValueError(problem)
        anchors = pairs.anchors.detach().clone().requires_grad_()
        same = pairs.candidates is pairs.anchors
        candidates = anchors if same else pairs.candidates.detach().clone().requires_grad_()
        pairs = dataclasses.replace(pairs, anchors=anchors, candidates=candidates)
        output = self(pairs)
        grads = torch.autograd.grad(output.value, [anchors, candidates], allow_unused=True)
        g_anchors, g_candidates = (
            torch.zeros_like(z) if g is None else g
            for g, z in zip(grads, (anchors, candidates), strict=True)
        )
        with full_precision(anchors.device):
            unit = self.rows(pairs)
            scores, masks = compare(unit, self.score).detach(), unit.masks()
            weight, g_scores, details = torch.zeros_like(scores), torch.zeros_like(scores), {}
            if scores.numel():
                g_scores = self._score_gradient(scores, masks, unit)
                weight = self.pair_weight(scores, masks, unit).detach()
                details = self.details(scores, masks, unit)
        return Anatomy(
            self.score, scores, *masks, weight, g_scores, g_anchors, g_candidates,
            LossOutput(output.per_anchor.detach(), output.weight.detach(), output.extras),
            {**output.extras, **details},
        )  # fmt: skip

    def _score_gradient(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        """∂L_i/∂score_ij (n, w); 0 for anchors whose loss is undefined."""
        leaf = scores.clone().requires_grad_()
        with torch.enable_grad():
            value, weight = self.per_anchor(leaf, masks, pairs)
            total = torch.where(weight > 0, value, 0.0).sum()
            (grad,) = torch.autograd.grad(total, leaf, allow_unused=True)
        return torch.zeros_like(scores) if grad is None else grad


def compare(pairs: Pairs, score: str) -> Tensor:
    """Scores (n, w) of all anchors with their candidates: dot, distance, squared_distance."""
    if pairs.columns is None:
        return getattr(similarity, score)(pairs.anchors, pairs.candidates)
    a, c = (
        pairs.anchors[:, None, :],
        deterministic_gather(pairs.candidates, pairs.columns),
    )  # (n, 1, d), (n, k, d)
    if score == "dot":
        return (c @ a.mT).squeeze(-1)
    squared = (a - c).square().sum(-1)  # (n, k)
    return squared if score == "squared_distance" else similarity.safe_sqrt(squared)


def slice_rows(pairs: Pairs, rows: slice) -> Pairs:
    """The pairs of some anchors with all their candidates."""
    fields = ("anchors", "anchor_groups", "anchor_rows", "anchor_views")
    optional = {k: getattr(pairs, k) for k in ("columns", "positive", "negative")}
    changed = {k: getattr(pairs, k)[rows] for k in fields}
    changed |= {k: v[rows] for k, v in optional.items() if v is not None}
    return dataclasses.replace(pairs, **changed)
