"""Lifted structured embedding (Oh Song et al. 2016, arXiv 1511.06452, eqs. 2 and 4).

Each positive pair meets every negative of both its ends: smoothly by log-sum-exp, or the hardest
one. The mean over anchors equals the paper's 1/(2|P|) Σ over unordered positive pairs.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core.losses import _base
from contrastive_core.losses._base import Loss
from contrastive_core.messages import N_
from contrastive_core.ops import similarity
from contrastive_core.ops.similarity import deterministic_gather, masked_logsumexp
from contrastive_core.pairs.types import Masks, Pairs
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.records.cards import LossCard
from contrastive_core.registry import knob


@dataclass(frozen=True)
class LiftedStructure(Loss):
    """L_i = mean over p ∈ P(i) of ½ max(0, J_ip)²; w_i = |P(i)|."""

    card = LossCard(
        title=N_("Lifted structure"),
        year=2016,
        paper="https://arxiv.org/abs/1511.06452",
        formula=(
            r"L_i = \frac{1}{|P(i)|}\sum_{p\in P(i)}\tfrac12\max(0, J_{ip})^2,\quad "
            r"J_{ip} = D_{ip}+\log\Big(\sum_{k\in N(i)}e^{\varepsilon-D_{ik}}"
            r"+\sum_{l\in N(i)}e^{\varepsilon-D_{pl}}\Big)"
        ),
        summary=N_(
            "Every positive pair is compared with all negatives of both its ends at once. It uses the whole matrix of "
            "distances of the batch."
        ),
        family="other",
        score="distance",
        by_label=True,
    )

    margin: float = knob(1.0, 0.0, 10.0, N_("How far a negative is pushed."))
    form: str = knob("smooth", help=N_("Log-sum-exp, or the hardest negative."), choices=("smooth", "hard"))
    normalize: bool = knob(False, help=N_("Compare unit rows."))

    def over_blocks(self, pairs: Pairs, on_fraction: OnFraction = ignore_fraction) -> tuple[Tensor, Tensor]:
        if not pairs.by_id or len(pairs) * pairs.width <= _base.BLOCK:
            return super().over_blocks(pairs, on_fraction)
        # Every candidate's own negatives first, then the anchors'.
        ends = torch.cat(self.in_blocks(self._candidate_ends, pairs.among_candidates()))
        blocks = self.in_blocks(self._with_ends, pairs, ends, on_fraction=on_fraction)
        values, weights = zip(*blocks, strict=True)
        return torch.cat(values), torch.cat(weights)

    def _candidate_ends(self, part: Pairs, a: Tensor, c: Tensor) -> Tensor:
        return self._negatives(similarity.distance(a, c), part.masks().negative)

    def _with_ends(self, part: Pairs, a: Tensor, c: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        return self._value(similarity.distance(a, c), part.masks(), ends)

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        if pairs.symmetric and not pairs.across and len(scores) == scores.shape[1]:
            return self._value(scores, masks, self._negatives(scores, masks.negative))
        i, p = masks.positive.nonzero().unbind(1)  # (pairs)
        ends = torch.zeros_like(scores).index_put((i, p), self._partner_ends(masks, pairs, i, p))
        return self._value(scores, masks, ends)

    def _value(self, d: Tensor, masks: Masks, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Args: ends: what the negatives of each candidate amount to, (w) or (n, w)."""
        own = self._negatives(d, masks.negative)  # (n)
        defined = masks.positive.any(-1) & masks.negative.any(-1)
        own = torch.where(defined, own, 0.0)[:, None]  # (n, 1)
        both = torch.logaddexp(own, ends) if self.form == "smooth" else torch.maximum(own, ends)
        j = torch.where(masks.positive & defined[:, None], d + both, 0.0)  # (n, w)
        number = masks.positive.sum(-1)
        value = j.clamp_min(0).square().sum(-1) / (2 * number.clamp_min(1))
        return value, (number * defined).to(d.dtype)

    def _negatives(self, d: Tensor, mask: Tensor) -> Tensor:
        """What the negatives of each row amount to: log Σ e^{ε−D}, or max ε−D; (rows)."""
        if self.form == "smooth":
            return masked_logsumexp(self.margin - d, mask)
        return (self.margin - d).masked_fill(~mask, -torch.inf).amax(-1)

    def _partner_ends(self, masks: Masks, pairs: Pairs, i: Tensor, p: Tensor) -> Tensor:
        """What the anchors' negatives amount to for each pair's positive p; (pairs)."""
        c = pairs.candidates
        if pairs.columns is None:
            return self._negatives(similarity.distance(deterministic_gather(c, p), c), masks.negative[i])
        near = deterministic_gather(c, pairs.columns[i])  # (pairs, k, d)
        partner = deterministic_gather(c, pairs.columns[i, p])[:, None]  # (pairs, 1, d)
        d = similarity.safe_sqrt((near - partner).square().sum(-1))
        return self._negatives(d, masks.negative[i])

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        """Softmax of ε − D over an anchor's negatives, as its own end sees them."""
        return similarity.softmax_over(self.margin - scores, masks.negative)
