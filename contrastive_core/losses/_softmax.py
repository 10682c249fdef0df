"""What the softmax losses share: logits, and the two ways to ask them for a log-sum-exp.

A loss of the family writes its `formula` once, in the terms of its paper: log-sum-exps over
positives, negatives or both, and means over positives. `MatrixLogits` answers from the matrix,
`TiledLogits` tile by tile, without it; `SoftmaxLoss.over_blocks` chooses by the number of scores.

The *effective number of negatives* is the exponential of the entropy of the softmax over an
anchor's negatives (after Wang & Liu 2021, arXiv 2012.09740).
"""

from abc import abstractmethod
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from contrastive_core.losses._base import Loss
from contrastive_core.losses._group_sums import beside_positives, mean_of_positives, most_in_a_group, relation_counts
from contrastive_core.losses._output import Details
from contrastive_core.messages import N_
from contrastive_core.ops.similarity import compare, masked_logsumexp, masked_mean, softmax_over
from contrastive_core.ops.tiled_logsumexp import can_be_tiled, tiled_logsumexp
from contrastive_core.pairs.types import Masks, Pairs
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.records.cards import Kernel
from contrastive_core.registry import knob, knobs_of

TILED_FROM = 1 << 17  # scores: half a megabyte in float32; the dense formula costs 0.5 ms more at most
LISTED = 32  # candidates of a group, up to which positives are listed one by one


def temperature_knob(default: float) -> Any:
    """The knob τ, on a logarithmic scale."""
    return knob(default, 0.001, 100.0, N_("Small: only the hardest count."), log=True)


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
        """Entropy (nats) of the softmax over each anchor's negatives, and its exponential; 0 without any; (n) each."""
        p = softmax_over(self.logits(scores, pairs), masks.negative)
        entropy = torch.special.entr(p).sum(-1)
        number = torch.where(masks.negative.any(-1), entropy.exp(), 0.0)
        return {"negative_entropy": entropy, "effective_negatives": number}


class MatrixLogits:
    """Logits (n, w) of some anchors, and what a formula asks of them.

    Masks may hold numbers, how many candidates each stands for. Positives may stand in the first
    columns only: then their mask is (n, k).
    """

    def __init__(self, values: Tensor, masks: Masks, positive_mean: Tensor | None = None) -> None:
        """Args: positive_mean: mean_P ℓ (n) where it is known better than from these columns."""
        self.values, self.masks, self.known_mean = values, masks, positive_mean

    @property
    def of_positives(self) -> tuple[Tensor, Tensor]:
        """Logits (n, k) and mask (n, k) of the columns that hold positives."""
        return self.values[:, : self.masks.positive.shape[1]], self.masks.positive

    def logsumexp(self, relation: str) -> Tensor:
        """log Σ e^ℓ (n) over "positive", "negative" or "compared" candidates (both)."""
        positive, negative, _ = self.masks
        if relation == "positive":
            return masked_logsumexp(*self.of_positives)
        if relation == "negative":
            return masked_logsumexp(self.values, negative)
        if positive.dtype == torch.bool and positive.shape == negative.shape:
            return masked_logsumexp(self.values, positive | negative)
        return torch.logaddexp(self.logsumexp("positive"), self.logsumexp("negative"))

    def positive_number(self) -> Tensor:
        """|P(i)| (n)."""
        return self.masks.positive.sum(-1)

    def positive_mean(self) -> Tensor:
        """mean_P ℓ (n)."""
        return masked_mean(*self.of_positives) if self.known_mean is None else self.known_mean

    def mean_cross_entropy(self, rest: Tensor) -> Tensor:
        """mean over p ∈ P(i) of log(e^ℓ_ip + e^rest_i) − ℓ_ip; (n)."""
        logits, positive = self.of_positives
        each = torch.where(positive > 0, logits, 0.0)
        mean = masked_mean(torch.logaddexp(each, rest[:, None].expand_as(each)) - each, positive)
        return mean if self.known_mean is None else mean + masked_mean(each, positive) - self.known_mean


class TiledLogits(MatrixLogits):
    """`MatrixLogits` of pairs that `can_be_tiled`, in memory that grows with n + m."""

    def __init__(self, pairs: Pairs, scale: float, on_fraction: OnFraction = ignore_fraction) -> None:
        self.pairs, self.scale, self.on_fraction, self.known_mean = pairs, scale, on_fraction, None

    @cached_property
    def of_positives(self) -> tuple[Tensor, Tensor]:
        near, positive = beside_positives(self.pairs)
        return self.scale * torch.cat(Loss.in_blocks(_products, near)), positive

    def logsumexp(self, relation: str) -> Tensor:
        if relation == "positive":
            return masked_logsumexp(*self.of_positives)
        return tiled_logsumexp(self.pairs, self.scale, relation, self.on_fraction)

    def positive_number(self) -> Tensor:
        return relation_counts(self.pairs)[0]

    def positive_mean(self) -> Tensor:
        return mean_of_positives(self.pairs, self.scale)


def _products(part: Pairs, anchors: Tensor, candidates: Tensor) -> Tensor:
    return compare(part.with_rows(anchors, candidates), "dot")


class SoftmaxLoss(LogitLoss):
    """A loss whose negatives count by their log-sum-exp alone."""

    @property
    def takes_weights(self) -> bool:
        return True

    @property
    def averages_positives(self) -> bool:
        """Whether −mean_P ℓ is a part of it, beside what hardly varies among positives."""
        return True

    @property
    def lists_positives(self) -> bool:
        """Whether the formula asks for the logit of each positive, and not for their mean alone."""
        return False

    @abstractmethod
    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        """The loss (n) of the anchors that have a positive; of others any number."""

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        return self.from_some(scores, masks, pairs, None)

    def from_some(self, scores: Tensor, masks: Masks, pairs: Pairs, positives: Tensor | None) -> tuple[Tensor, Tensor]:
        mean = None if positives is None else self.logit_scale * positives
        return self._of(MatrixLogits(self.logits(scores, pairs), masks, mean), pairs)

    def positive_means(self, pairs: Pairs) -> Tensor | None:
        return mean_of_positives(pairs, 1.0) if self.averages_positives and self.score == "dot" else None

    def over_blocks(self, pairs: Pairs, on_fraction: OnFraction = ignore_fraction) -> tuple[Tensor, Tensor]:
        many = len(pairs) * pairs.width >= TILED_FROM
        if not (many and self.score == "dot" and can_be_tiled(pairs, self.logit_scale)):
            return super().over_blocks(pairs, on_fraction)
        if self.lists_positives and most_in_a_group(pairs) > LISTED:
            return super().over_blocks(pairs, on_fraction)
        return self._of(TiledLogits(pairs, self.logit_scale, on_fraction), pairs)

    def _of(self, logits: MatrixLogits, pairs: Pairs) -> tuple[Tensor, Tensor]:
        """Loss and weight (n): both 0 where no positive is."""
        defined, value = logits.positive_number() > 0, self.formula(logits, pairs)
        return torch.where(defined, value, 0.0), defined.to(value.dtype)

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
