"""What the softmax losses share: two log-sum-exps, dense or tiled, and what explains them.

A loss of the family writes `from_logits(ℓ, positives, log Σ_N e^ℓ)`: its positives one by one, its
negatives only through their log-sum-exp. So one formula serves the whole matrix, and the tiled
engine, which gives that log-sum-exp without the matrix and leaves only the pairs of one group.

The *effective number of negatives* is the exponential of the entropy of the softmax over an
anchor's negatives (after Wang & Liu 2021, arXiv 2012.09740).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor

from contrastive_core.losses._base import Loss
from contrastive_core.losses._group_sums import mean_of_positives, over_groups, relation_counts
from contrastive_core.losses._multiview import contrast_of_views
from contrastive_core.ops import tiled_logsumexp
from contrastive_core.ops.similarity import masked_logsumexp, masked_mean
from contrastive_core.ops.tiled_logsumexp import Logits
from contrastive_core.pairs.types import Masks, Pairs
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.registry import knobs_of

__all__ = [
    "LogitLoss",
    "SoftmaxLoss",
    "effective_negatives",
    "log_of_mean",
    "own_positive",
    "shared_denominator",
    "softmax_over",
]


class LogitLoss(Loss):
    """A loss over logits ℓ = ±s/τ, and what explains it."""

    @property
    def temperature(self) -> float:
        """τ; most losses have it as a knob."""
        return 1.0

    @property
    def logit_scale(self) -> float:
        """±1/τ: what a score is multiplied by."""
        return (1 if self.score == "dot" else -1) / self.temperature

    def logits(self, scores: Tensor, pairs: Pairs) -> Tensor:
        """Scores (n, w) as the softmax sees them."""
        return scores * self.logit_scale

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        return softmax_over(self.logits(scores, pairs), masks.positive | masks.negative)

    def details(self, scores: Tensor, masks: Masks, pairs: Pairs) -> dict[str, Any]:
        entropy, number = effective_negatives(self.logits(scores, pairs), masks.negative)
        return {"negative_entropy": entropy, "effective_negatives": number}


class SoftmaxLoss(LogitLoss):
    """A loss by `from_logits`, its value times `scale`."""

    scale: ClassVar[float] = 1.0
    one_denominator: ClassVar[bool] = False  # it is `shared_denominator`

    @property
    def takes_weights(self) -> bool:
        return True

    @property
    def averages_positives(self) -> bool:
        """Whether −mean_P ℓ is a part of it, beside what hardly varies among positives."""
        return True

    @abstractmethod
    def from_logits(self, logits: Tensor, positive: Tensor, negatives: Tensor) -> Tensor:
        """The loss (n) from ℓ (n, w), the mask of positives (n, w) and log Σ_N e^ℓ (n)."""

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        logits = self.logits(scores, pairs)  # (n, w)
        negatives = masked_logsumexp(logits, masks.negative)  # (n)
        value = self.scale * self.from_logits(logits, masks.positive, negatives)
        return value, masks.positive.any(-1).to(scores.dtype)

    def from_some(
        self, scores: Tensor, masks: Masks, pairs: Pairs, positives: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        logits = self.logits(scores, pairs)  # (n, w)
        negatives = masked_logsumexp(logits, masks.negative)  # (n)
        logits, positive = logits[:, : masks.positive.shape[1]], masks.positive  # (n, k)
        value = self.from_logits(logits, positive, negatives)
        if positives is not None:  # −mean_P ℓ is in the loss: the exact mean in that one's place
            value = value + masked_mean(logits, positive) - self.logit_scale * positives
        return self.scale * value, positive.any(-1).to(scores.dtype)

    def positive_means(self, pairs: Pairs) -> Tensor | None:
        if not self.averages_positives or self.score != "dot":
            return None
        return mean_of_positives(pairs, 1.0, relation_counts(pairs)[0])

    def over_blocks(
        self, pairs: Pairs, on_fraction: OnFraction = ignore_fraction
    ) -> tuple[Tensor, Tensor]:
        if not tiled_logsumexp.should_tile(pairs):
            return super().over_blocks(pairs, on_fraction)
        logits = Logits(self.score, self.logit_scale, self.normalize)
        number = relation_counts(pairs)[0]
        if self.one_denominator and tiled_logsumexp.has_closed_form(pairs, logits):
            value = contrast_of_views(pairs.anchors, logits.scale, pairs.even_views or 0)
        elif self.one_denominator and self.score == "dot":
            lse = tiled_logsumexp.tiled_logsumexp(pairs, logits, "compared", on_fraction)
            positives = mean_of_positives(pairs, logits.scale, number)
            value = torch.where(number > 0, lse, 0.0) - positives
        else:
            pairs, place = tiled_logsumexp.by_group(pairs)
            lse = tiled_logsumexp.tiled_logsumexp(pairs, logits, "negative", on_fraction)
            value = over_groups(pairs, lse, self.score, logits.scale, self.from_logits)[place]
        return self.scale * value, (number > 0).to(value.dtype)

    def _kernel(self, **settings: Any) -> dict[str, Any]:
        return {
            "family": "softmax",
            "knob": "temperature" if "temperature" in knobs_of(type(self)) else None,
            "temperature": self.temperature,
            "denominator": "all",
            "aggregate": "out",
            "scale": "none",
            "base": None,
            "sign": 1,
        } | settings


def softmax_over(logits: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the masked entries of each row (n, w); 0 elsewhere."""
    some = mask.any(-1, keepdim=True)
    filled = logits.masked_fill(~mask, -torch.inf)
    return torch.where(some, torch.where(some, filled, 0.0).softmax(-1), 0.0) * mask


def effective_negatives(logits: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    """Entropy (nats) of the softmax over the negatives, and its exponential; (n) each.

    Without negatives both are 0.
    """
    p = softmax_over(logits, negative)
    entropy = torch.special.entr(p).sum(-1)
    return entropy, torch.where(negative.any(-1), entropy.exp(), 0.0)


def shared_denominator(logits: Tensor, positive: Tensor, negatives: Tensor) -> Tensor:
    """log Σ_{A(i)} e^ℓ − mean_P ℓ: every positive against one denominator; (n)."""
    over_all = torch.logaddexp(masked_logsumexp(logits, positive), negatives)
    return torch.where(positive.any(-1), over_all, 0.0) - masked_mean(logits, positive)


def own_positive(logits: Tensor, positive: Tensor, negatives: Tensor) -> Tensor:
    """mean_P [log(e^{ℓ_p} + Σ_N e^ℓ) − ℓ_p]: the other positives left out; (n)."""
    each = torch.where(positive > 0, logits, 0.0)
    return masked_mean(torch.logaddexp(each, negatives[:, None].expand_as(each)) - each, positive)


def log_of_mean(logits: Tensor, positive: Tensor, negatives: Tensor) -> Tensor:
    """log Σ_{A(i)} e^ℓ − log Σ_{P(i)} e^ℓ: all positives together; (n)."""
    of_positives = masked_logsumexp(logits, positive)
    both = torch.logaddexp(of_positives, negatives) - of_positives
    return torch.where(positive.any(-1), both, 0.0)
