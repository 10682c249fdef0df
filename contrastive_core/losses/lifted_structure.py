"""Lifted structured embedding (Oh Song et al. 2016, arXiv 1511.06452, eqs. 2 and 4).

Each positive pair is compared with every negative of both its samples: smoothly by log-sum-exp, or only with the
hardest one. The mean over anchors equals the paper's 1/(2|P|) Σ over unordered positive pairs."""

from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.progress import OnFraction, ignore_fraction
from contrastive_core.base.registry import knob
from contrastive_core.losses._base import Loss, in_blocks, rows_at_once
from contrastive_core.ops import similarity
from contrastive_core.ops.similarity import deterministic_gather, masked_logsumexp
from contrastive_core.pairs.types import Masks, Pairs


@dataclass(frozen=True)
class LiftedStructure(Loss):
    """The lifted structure loss: L_i = mean over p ∈ P(i) of ½ max(0, J_ip)²; w_i = |P(i)|."""

    score = "distance"

    margin: float = knob(1.0, 0.0, 10.0, N_("Largest distance at which a negative is pushed."))
    form: str = knob("smooth", help=N_("Log-sum-exp, or the hardest negative."), choices=("smooth", "hard"))
    normalize: bool = knob(False, help=N_("Compare unit rows."))

    def over_blocks(self, pairs: Pairs, on_fraction: OnFraction = ignore_fraction) -> tuple[Tensor, Tensor]:
        if not pairs.by_id or rows_at_once(pairs) >= len(pairs):
            return super().over_blocks(pairs, on_fraction)

        def ends_of(part: Pairs, a: Tensor, c: Tensor) -> Tensor:
            return self._negatives(similarity.distance(a, c), part.masks().negative)

        def value_of(part: Pairs, a: Tensor, c: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
            return self._value(similarity.distance(a, c), part.masks(), ends)

        ends = torch.cat(in_blocks(ends_of, pairs.among_candidates()))  # the negatives of every candidate
        values, weights = zip(*in_blocks(value_of, pairs, ends, on_fraction=on_fraction), strict=True)
        return torch.cat(values), torch.cat(weights)

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        if pairs.symmetric and not pairs.across and len(scores) == scores.shape[1]:
            return self._value(scores, masks, self._negatives(scores, masks.negative))
        i, p = masks.positive.nonzero().unbind(1)  # (pairs)
        c = pairs.candidates
        if pairs.columns is None:
            d = similarity.distance(deterministic_gather(c, p), c)  # (pairs, m)
        else:
            near = deterministic_gather(c, pairs.columns[i])  # (pairs, k, d)
            partner = deterministic_gather(c, pairs.columns[i, p])[:, None]  # (pairs, 1, d)
            d = similarity.safe_sqrt((near - partner).square().sum(-1))
        ends = torch.zeros_like(scores).index_put((i, p), self._negatives(d, masks.negative[i]))
        return self._value(scores, masks, ends)

    def _value(self, d: Tensor, masks: Masks, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Return loss and weight (n). Args: ends: the summed push of each candidate's negatives, (w) or (n, w)."""
        own = self._negatives(d, masks.negative)  # (n)
        defined = masks.positive.any(-1) & masks.negative.any(-1)
        own = torch.where(defined, own, 0.0)[:, None]  # (n, 1)
        both = torch.logaddexp(own, ends) if self.form == "smooth" else torch.maximum(own, ends)
        j = torch.where(masks.positive & defined[:, None], d + both, 0.0)  # (n, w)
        number = masks.positive.sum(-1)
        value = j.clamp_min(0).square().sum(-1) / (2 * number.clamp_min(1))
        return value, (number * defined).to(d.dtype)

    def _negatives(self, d: Tensor, mask: Tensor) -> Tensor:
        """Return the summed push of each row's negatives (rows): log Σ e^{ε−D}, or max ε−D."""
        if self.form == "smooth":
            return masked_logsumexp(self.margin - d, mask)
        return (self.margin - d).masked_fill(~mask, -torch.inf).amax(-1)

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        """Return the softmax of ε − D over the negatives of each anchor."""
        return similarity.softmax_over(self.margin - scores, masks.negative)
