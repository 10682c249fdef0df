"""What the softmax losses share: logits, and the two ways to ask them for a log-sum-exp.

A loss of the family writes its `formula` once, in the terms of its paper: log-sum-exps over
positives, negatives or both, and means over positives. `MatrixLogits` answers from the matrix,
`TiledLogits` by the tiled engine, without it; `SoftmaxLoss.over_blocks` chooses by the number of
scores.

The *effective number of negatives* is the exponential of the entropy of the softmax over an
anchor's negatives (after Wang & Liu 2021, arXiv 2012.09740).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from contrastive_core.losses._base import Loss
from contrastive_core.losses._group_sums import mean_of_positives, relation_counts
from contrastive_core.losses._output import Details
from contrastive_core.losses._tiled_logits import TiledLogits
from contrastive_core.ops import tiled_logsumexp
from contrastive_core.ops.similarity import masked_logsumexp, masked_mean, softmax_over
from contrastive_core.pairs.types import Masks, Pairs
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.records.cards import Kernel
from contrastive_core.registry import knobs_of

__all__ = ["LogitLoss", "MatrixLogits", "SoftmaxLoss", "effective_negatives"]


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

    def details(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Details:
        entropy, number = effective_negatives(self.logits(scores, pairs), masks.negative)
        return {"negative_entropy": entropy, "effective_negatives": number}


class MatrixLogits:
    """Logits (n, w) of some anchors, and what a formula asks of them.

    Masks may hold numbers, how many candidates each stands for. Positives may stand in the first
    columns only: then their mask is (n, k).
    """

    def __init__(self, values: Tensor, masks: Masks, positive_mean: Tensor | None = None) -> None:
        """Args: positive_mean: mean_P ℓ (n) where it is known better than from these columns."""
        self.values, self.masks, self.known_mean = values, masks, positive_mean
        self.of_positives = values[:, : masks.positive.shape[1]]

    @property
    def positives(self) -> Tensor:
        """|P(i)| (n)."""
        return self.masks.positive.sum(-1)

    def logsumexp(self, relation: str) -> Tensor:
        """log Σ e^ℓ (n) over "positive", "negative" or "compared" candidates (both)."""
        positive, negative, _ = self.masks
        if relation == "positive":
            return masked_logsumexp(self.of_positives, positive)
        if relation == "negative":
            return masked_logsumexp(self.values, negative)
        if positive.dtype == torch.bool and positive.shape == negative.shape:
            return masked_logsumexp(self.values, positive | negative)
        return torch.logaddexp(self.logsumexp("positive"), self.logsumexp("negative"))

    def positive_mean(self) -> Tensor:
        """mean_P ℓ (n)."""
        if self.known_mean is not None:
            return self.known_mean
        return masked_mean(self.of_positives, self.masks.positive)

    def mean_cross_entropy(self, denominator: Callable[[Tensor, Tensor], Tensor], rest: Tensor) -> Tensor:
        """mean over p ∈ P(i) of denominator(ℓ_ip, rest_i) − ℓ_ip; (n)."""
        positive = self.masks.positive
        each = torch.where(positive > 0, self.of_positives, 0.0)
        mean = masked_mean(denominator(each, rest[:, None].expand_as(each)) - each, positive)
        return mean if self.known_mean is None else mean + masked_mean(each, positive) - self.known_mean


class SoftmaxLoss(LogitLoss):
    """A loss whose negatives count by their log-sum-exp alone."""

    @property
    def takes_weights(self) -> bool:
        return True

    @property
    def averages_positives(self) -> bool:
        """Whether −mean_P ℓ is a part of it, beside what hardly varies among positives."""
        return True

    @abstractmethod
    def formula(self, logits: MatrixLogits | TiledLogits, pairs: Pairs) -> Tensor:
        """The loss (n) of the anchors that have a positive; of others any number."""

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        return self.from_some(scores, masks, pairs, None)

    def from_some(self, scores: Tensor, masks: Masks, pairs: Pairs, positives: Tensor | None) -> tuple[Tensor, Tensor]:
        mean = None if positives is None else self.logit_scale * positives
        value = self.formula(MatrixLogits(self.logits(scores, pairs), masks, mean), pairs)
        return _where_defined(value, masks.positive.any(-1))

    def positive_means(self, pairs: Pairs) -> Tensor | None:
        if not self.averages_positives or self.score != "dot":
            return None
        return mean_of_positives(pairs, 1.0, relation_counts(pairs)[0])

    def over_blocks(self, pairs: Pairs, on_fraction: OnFraction = ignore_fraction) -> tuple[Tensor, Tensor]:
        many = len(pairs) * pairs.width >= tiled_logsumexp.TILED_FROM
        if not (many and pairs.by_id):
            return super().over_blocks(pairs, on_fraction)
        logits = TiledLogits(pairs, self.score, self.logit_scale, self.normalize, on_fraction)
        return _where_defined(self.formula(logits, pairs), logits.positives > 0)

    def _kernel(self, **settings: Any) -> Kernel:
        common = Kernel(
            family="softmax",
            knob="temperature" if "temperature" in knobs_of(type(self)) else None,
            temperature=self.temperature,
            denominator="all",
            aggregate="out",
            scale="none",
            base=None,
            sign=1,
        )
        return Kernel(**{**common, **settings})  # type: ignore[typeddict-item]


def _where_defined(value: Tensor, defined: Tensor) -> tuple[Tensor, Tensor]:
    """Loss and weight (n): both 0 where the loss is undefined."""
    return torch.where(defined, value, 0.0), defined.to(value.dtype)


def effective_negatives(logits: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    """Entropy (nats) of the softmax over the negatives, and its exponential; (n) each.

    Without negatives both are 0.
    """
    p = softmax_over(logits, negative)
    entropy = torch.special.entr(p).sum(-1)
    return entropy, torch.where(negative.any(-1), entropy.exp(), 0.0)
