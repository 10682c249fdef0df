"""Lifted structured embedding (Oh Song et al. 2016, arXiv 1511.06452, eqs. 2 and 4).

Each positive pair meets every negative of both its ends: smoothly by log-sum-exp, or the hardest
one. The mean over anchors equals the paper's 1/(2|P|) Σ over unordered positive pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from contrastive_core.losses import _base
from contrastive_core.losses._base import Loss
from contrastive_core.losses._lifted_fused import lifted_at_once
from contrastive_core.ops import similarity
from contrastive_core.ops.similarity import deterministic_gather, masked_logsumexp
from contrastive_core.pairs.types import Masks, Pairs
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.registry import knob

__all__ = ["LiftedStructure"]


@dataclass(frozen=True)
class LiftedStructure(Loss):
    """L_i = mean over p ∈ P(i) of ½ max(0, J_ip)²; w_i = |P(i)|."""

    title: ClassVar[str] = "Lifted structure"
    paper: ClassVar[str] = "https://arxiv.org/abs/1511.06452"
    year: ClassVar[int] = 2016
    by_label: ClassVar[bool] = True
    family: ClassVar[str] = "other"
    score: ClassVar[str] = "distance"
    formula: ClassVar[str] = (
        r"L_i = \frac{1}{|P(i)|}\sum_{p\in P(i)}\tfrac12\max(0, J_{ip})^2,\quad "
        r"J_{ip} = D_{ip}+\log\Big(\sum_{k\in N(i)}e^{\varepsilon-D_{ik}}"
        r"+\sum_{l\in N(i)}e^{\varepsilon-D_{pl}}\Big)"
    )
    summary: ClassVar[str] = (
        "Every positive pair is compared with all negatives of both its ends at once. "
        "It uses the whole matrix of distances of the batch."
    )

    margin: float = knob(1.0, 0.0, 10.0, "How far a negative is pushed.")
    form: str = knob(
        "smooth", help="Log-sum-exp, or the hardest negative.", choices=("smooth", "hard")
    )
    normalize: bool = knob(False, help="Compare unit rows.")

    def over_blocks(
        self, pairs: Pairs, on_fraction: OnFraction = ignore_fraction
    ) -> tuple[Tensor, Tensor]:
        if self.form == "smooth" and (at_once := lifted_at_once(pairs, self.margin)):
            return at_once
        if not pairs.by_id or len(pairs) * pairs.width <= _base.BLOCK:
            return super().over_blocks(pairs, on_fraction)
        # Every candidate's own row sum first, then the anchors'.
        ends = torch.cat(self.in_blocks(self._sums, pairs.among_candidates()))
        blocks = self.in_blocks(self._with_ends, pairs, ends, on_fraction=on_fraction)
        values, weights = zip(*blocks, strict=True)
        return torch.cat(values), torch.cat(weights)

    def _with_ends(self, part: Pairs, a: Tensor, c: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        return self._value(similarity.distance(a, c), part.masks(), lambda i, p: _each(ends, p))

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        negatives = self._negatives(scores, masks.negative)

        def of_partner(i: Tensor, p: Tensor) -> Tensor:
            if pairs.by_id and len(scores) == scores.shape[1] and pairs.symmetric:
                return _each(negatives, p)
            return self._partner_sums(masks, pairs, i, p)

        return self._value(scores, masks, of_partner)

    def _value(
        self, d: Tensor, masks: Masks, of_partner: Callable[[Tensor, Tensor], Tensor]
    ) -> tuple[Tensor, Tensor]:
        defined = masks.positive.any(-1) & masks.negative.any(-1)
        i, p = (masks.positive & defined[:, None]).nonzero().unbind(1)  # (pairs)
        of_anchor, other = _each(self._negatives(d, masks.negative), i), of_partner(i, p)
        both = (
            torch.logaddexp(of_anchor, other)
            if self.form == "smooth"
            else torch.maximum(of_anchor, other)
        )
        half = (d[i, p] + both).clamp_min(0).square() / 2
        number = masks.positive.sum(-1)
        value = d.new_zeros(len(d)).index_add(0, i, half) / number.clamp_min(1)
        return value, (number * defined).to(d.dtype)

    def _negatives(self, d: Tensor, mask: Tensor) -> Tensor:
        """What the negatives of each row amount to: log Σ e^{ε−D}, or max ε−D; (rows)."""
        if self.form == "smooth":
            return masked_logsumexp(self.margin - d, mask)
        return (self.margin - d).masked_fill(~mask, -torch.inf).amax(-1)

    def _sums(self, part: Pairs, a: Tensor, c: Tensor) -> Tensor:
        return self._negatives(similarity.distance(a, c), part.masks().negative)

    def _partner_sums(self, masks: Masks, pairs: Pairs, i: Tensor, p: Tensor) -> Tensor:
        """What the anchors' negatives amount to for each pair's positive p; (pairs)."""
        c = pairs.candidates
        if pairs.columns is None:
            return self._negatives(
                similarity.distance(deterministic_gather(c, p), c), masks.negative[i]
            )
        near = deterministic_gather(c, pairs.columns[i])  # (pairs, k, d)
        partner = deterministic_gather(c, pairs.columns[i, p])[:, None]  # (pairs, 1, d)
        d = similarity.safe_sqrt((near - partner).square().sum(-1))
        return self._negatives(d, masks.negative[i])

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        """Softmax of ε − D over an anchor's negatives, as its own end sees them."""
        some = masks.negative.any(-1, keepdim=True)
        filled = (self.margin - scores).masked_fill(~masks.negative, -torch.inf)
        return torch.where(some, torch.where(some, filled, 0.0).softmax(-1), 0.0) * masks.negative


def _each(x: Tensor, rows: Tensor) -> Tensor:
    return deterministic_gather(x[:, None], rows)[:, 0]
