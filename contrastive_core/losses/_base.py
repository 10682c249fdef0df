"""What every loss shares: rows in, a value per anchor out, and the same formula taken apart.

A loss writes its formula once, in `per_anchor(scores, masks, pairs)`, over the scores of some
anchors (rows) with their candidates (columns). Scores are made here: rows are brought to float32
or better, normalised where the loss says so, and compared. When the matrix would be large, anchors
are taken in blocks that the backward pass computes again, so that memory grows with m, not n·m.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from contrastive_core import similarity
from contrastive_core.types import Anatomy, LossOutput, Masks, Pairs

__all__ = ["BLOCK", "Loss", "compare", "exactly", "slice_rows"]

BLOCK = 1 << 24  # scores held at once: 64 MB in float32


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
        with exactly(pairs.anchors.device):
            pairs = self.rows(pairs)
            value, weight = self.over_blocks(pairs)
            attached = 0 * (pairs.anchors.sum() + pairs.candidates.sum())
            value = torch.where(weight > 0, value, torch.zeros_like(value)) + attached
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
        unit = getattr(self, "normalise", False)

        def ready(z: Tensor) -> Tensor:
            z = z if z.dtype == torch.float64 else z.float()
            return similarity.normalise(z) if unit else z

        anchors = ready(pairs.anchors)
        same = pairs.candidates is pairs.anchors
        candidates = anchors if same else ready(pairs.candidates)
        return dataclasses.replace(pairs, anchors=anchors, candidates=candidates)

    def over_blocks(self, pairs: Pairs) -> tuple[Tensor, Tensor]:
        """`per_anchor` over all anchors, in blocks of rows where the whole would be large."""
        n, size = len(pairs), max(1, BLOCK // max(1, pairs.width))
        if n <= size:
            return self._block(pairs.anchors, pairs.candidates, pairs)
        parts = [
            checkpoint(
                self._block,
                pairs.anchors[i : i + size],
                pairs.candidates,
                slice_rows(pairs, slice(i, i + size)),
                use_reentrant=False,
            )
            for i in range(0, n, size)
        ]
        values, weights = zip(*parts, strict=True)
        return torch.cat(values), torch.cat(weights)

    def _block(self, anchors: Tensor, candidates: Tensor, pairs: Pairs) -> tuple[Tensor, Tensor]:
        pairs = dataclasses.replace(pairs, anchors=anchors, candidates=candidates)
        return self.per_anchor(compare(pairs, self.score), pairs.masks(), pairs)

    def count_negatives(self, pairs: Pairs) -> Tensor:
        """|N(i)| of every anchor (n), without the whole mask at once."""
        size = max(1, BLOCK // max(1, pairs.width))
        blocks = range(0, max(1, len(pairs)), size)
        return torch.cat([pairs.masks(slice(i, i + size)).negative.sum(-1) for i in blocks])

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
        with exactly(anchors.device):
            unit = self.rows(pairs)
            scores = compare(unit, self.score).detach().requires_grad_()
            masks = unit.masks()
            per_anchor, _ = self.per_anchor(scores, masks, unit)
            (g_scores,) = torch.autograd.grad(per_anchor.sum(), scores, allow_unused=True)
            g_scores = torch.zeros_like(scores) if g_scores is None else g_scores
            fixed = scores.detach()
            weight = self.pair_weight(fixed, masks, unit).detach()
            extras = {**output.extras, **self.details(fixed, masks, unit)}
        return Anatomy(
            self.score, fixed, *masks, weight, g_scores, g_anchors, g_candidates,
            LossOutput(output.per_anchor.detach(), output.weight.detach(), output.extras), extras,
        )  # fmt: skip


def compare(pairs: Pairs, score: str) -> Tensor:
    """Scores (n, w) of all anchors with their candidates: dot, distance, squared_distance."""
    if pairs.columns is None:
        return getattr(similarity, score)(pairs.anchors, pairs.candidates)
    a, c = pairs.anchors[:, None, :], pairs.candidates[pairs.columns]  # (n, 1, d), (n, k, d)
    if score == "dot":
        return (c @ a.mT).squeeze(-1)
    squared = (a - c).square().sum(-1)  # (n, k)
    return squared if score == "squared_distance" else similarity.root(squared)


def slice_rows(pairs: Pairs, rows: slice) -> Pairs:
    """The pairs of some anchors with all their candidates."""
    fields = ("anchors", "anchor_groups", "anchor_rows", "anchor_views")
    optional = {k: getattr(pairs, k) for k in ("columns", "positive", "negative")}
    changed = {k: getattr(pairs, k)[rows] for k in fields}
    changed |= {k: v[rows] for k, v in optional.items() if v is not None}
    return dataclasses.replace(pairs, **changed)


@contextmanager
def exactly(device: torch.device) -> Iterator[None]:
    """No autocast and no TF32 inside."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.autocast(device.type, enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
