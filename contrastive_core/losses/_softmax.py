"""What the softmax losses share: logits, and the two ways to ask them for a log-sum-exp.

A loss of the family writes its `formula` once, in the terms of its paper: log-sum-exps over
positives, negatives or both, and means over positives. `MatrixLogits` answers from the matrix,
`TiledLogits` tile by tile, without it; `SoftmaxLoss.over_blocks` chooses by the number of scores.

The *effective number of negatives* is the exponential of the entropy of the shares that an anchor's
negatives have of the push (after Wang & Liu 2021, arXiv 2012.09740): of a plain softmax its weights.
"""

from abc import abstractmethod
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from contrastive_core.losses._base import BLOCK, Loss
from contrastive_core.losses._group_sums import beside_positives, mean_of_positives, most_in_a_group, relation_counts
from contrastive_core.losses._output import Details
from contrastive_core.messages import N_
from contrastive_core.ops.similarity import compare, masked_logsumexp, masked_mean, masked_sum, softmax_over
from contrastive_core.ops.tiled_logsumexp import tiled_logsumexp
from contrastive_core.ops.tiled_sum import tiled_softplus
from contrastive_core.pairs.types import Masks, Pairs
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.records.cards import Kernel
from contrastive_core.registry import knob, knobs_of

TILED_FROM = 1 << 17  # scores: half a megabyte in float32; the dense formula costs 0.5 ms more at most
LISTED = 32  # candidates of a group, up to which positives are listed one by one


def temperature_knob(default: float) -> Any:
    """The knob τ, on a logarithmic scale."""
    return knob(default, 0.001, 100.0, N_("Small: only the hardest count."), log=True)


def negative_margin_knob() -> Any:
    """The margin above a positive from which on a negative is suspected to be false."""
    return knob(
        None, -2.0, 2.0, N_("Leaves out negatives more similar than the positive by this margin: they may be false.")
    )


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

    @property
    def negative_margin(self) -> float | None:
        """Above which margin over the positives a negative is left out; some losses have it as a knob."""
        return None

    @property
    def lists_positives(self) -> bool:
        """Whether the formula asks for the logit of each positive, and not for their mean alone."""
        return False

    def is_tiled(self, pairs: Pairs) -> bool:
        """Whether the loss of these pairs is computed tile by tile, without the matrix."""
        least = TILED_FROM if pairs.anchors.device.type == "cpu" else BLOCK
        if len(pairs) * pairs.width < least or self.score != "dot" or not pairs.by_id:
            return False
        if not (self.lists_positives or self.negative_margin is not None):
            return True
        most = most_in_a_group(pairs)
        return most is not None and most <= LISTED

    def logits(self, scores: Tensor, pairs: Pairs) -> Tensor:
        """Scores (n, w) as the softmax sees them."""
        return scores * self.logit_scale

    def counted(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Masks:
        """The masks without the negatives that the loss leaves out."""
        return masks

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        masks = self.counted(scores, masks, pairs)
        return softmax_over(self.logits(scores, pairs), masks.positive | masks.negative)

    def push_shares(self, scores: Tensor, negative: Tensor, pairs: Pairs) -> Tensor:
        """How the push on an anchor's negatives is shared among them (n, w): they sum to 1."""
        return softmax_over(self.logits(scores, pairs), negative)

    def details(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Details:
        """Entropy (nats) of the shares of the push on each anchor's negatives, and its exponential; 0 without any; (n)
        each."""
        masks = self.counted(scores, masks, pairs)
        p = self.push_shares(scores, masks.negative, pairs)
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

    def logsumexp(self, relation: str, times: float = 1.0) -> Tensor:
        """log Σ e^(times · ℓ) (n) over "positive", "negative" or "compared" candidates (both)."""
        if relation == "positive":
            logits, positive = self.of_positives
            return masked_logsumexp(times * logits, positive)
        positive, negative, _ = self.masks
        if relation == "negative":
            return masked_logsumexp(times * self.values, negative)
        if positive.dtype == torch.bool and positive.shape == negative.shape:
            return masked_logsumexp(times * self.values, positive | negative)
        return torch.logaddexp(self.logsumexp("positive", times), self.logsumexp("negative", times))

    def sum_softplus(self, relation: str, bias: Tensor, sign: int = 1) -> Tensor:
        """Σ log(1 + e^(sign · (ℓ + bias))) (n) over "positive" or "negative" candidates."""
        logits, mask = self.of_positives if relation == "positive" else (self.values, self.masks.negative)
        return masked_sum(-logsigmoid(-sign * (logits + bias)), mask)

    def positive_number(self) -> Tensor:
        """|P(i)| (n)."""
        return self.masks.positive.sum(-1)

    def negative_number(self) -> Tensor:
        """|N(i)| (n)."""
        return self.masks.negative.sum(-1)

    def positive_mean(self) -> Tensor:
        """mean_P ℓ (n)."""
        return masked_mean(*self.of_positives) if self.known_mean is None else self.known_mean

    def cross_entropies(self, rest: Tensor) -> Tensor:
        """log(e^ℓ_ip + e^rest_ip) − ℓ_ip of every positive, (n, k); rest: (n, k) or (n)."""
        logits, positive = self.of_positives
        each = torch.where(positive > 0, logits, 0.0)
        rest = rest if rest.ndim == each.ndim else rest[:, None].expand_as(each)
        return torch.logaddexp(each, rest) - each

    def mean_over_positives(self, each: Tensor) -> Tensor:
        """mean over p ∈ P(i) of a number (n, k) of every positive; (n)."""
        return masked_mean(each, self.of_positives[1])

    def mean_cross_entropy(self, rest: Tensor) -> Tensor:
        """mean over p ∈ P(i) of log(e^ℓ_ip + e^rest_i) − ℓ_ip; (n)."""
        mean = self.mean_over_positives(self.cross_entropies(rest))
        return mean if self.known_mean is None else mean + masked_mean(*self.of_positives) - self.known_mean

    def highest_negative(self, margin: float) -> Tensor:
        """max_P ℓ + margin (n), detached; above it a negative is suspected to be false."""
        logits, positive = self.of_positives
        highest = logits.detach().masked_fill(positive == 0, -torch.inf).amax(-1) if logits.shape[1] else None
        if highest is None:
            return logits.new_full((len(logits),), torch.inf)
        return torch.where(highest == -torch.inf, torch.inf, highest + margin)

    def without_false_negatives(self, margin: float) -> "MatrixLogits":
        """The same logits, less the negatives above max_P ℓ + margin."""
        false = self.values.detach() > self.highest_negative(margin)[:, None]
        negative = self.masks.negative
        kept = torch.where(false, torch.zeros_like(negative), negative)
        return MatrixLogits(self.values, self.masks._replace(negative=kept), self.known_mean)


class TiledLogits(MatrixLogits):
    """`MatrixLogits` of pairs related by id, in memory that grows with n + m."""

    def __init__(self, pairs: Pairs, scale: float, on_fraction: OnFraction = ignore_fraction) -> None:
        self.pairs, self.scale, self.on_fraction, self.known_mean = pairs, scale, on_fraction, None
        self.limits: Tensor | None = None

    @cached_property
    def of_positives(self) -> tuple[Tensor, Tensor]:
        near, positive = beside_positives(self.pairs)
        return self.scale * torch.cat(Loss.in_blocks(_products, near)), positive

    def logsumexp(self, relation: str, times: float = 1.0) -> Tensor:
        if relation == "positive":
            return super().logsumexp(relation, times)
        if self.limits is None:
            return tiled_logsumexp(self.pairs, times * self.scale, relation, self.on_fraction)
        limits = times * self.limits
        negatives = tiled_logsumexp(self.pairs, times * self.scale, "negative", self.on_fraction, limits)
        return negatives if relation == "negative" else torch.logaddexp(self.logsumexp("positive", times), negatives)

    def sum_softplus(self, relation: str, bias: Tensor, sign: int = 1) -> Tensor:
        if relation == "positive":
            return super().sum_softplus(relation, bias, sign)
        return tiled_softplus(self.pairs, sign * self.scale, relation, sign * bias, self.on_fraction)

    @cached_property
    def numbers(self) -> tuple[Tensor, Tensor]:
        """|P(i)| and |N(i)| (n)."""
        return relation_counts(self.pairs)

    def positive_number(self) -> Tensor:
        return self.numbers[0]

    def negative_number(self) -> Tensor:
        return self.numbers[1]

    def positive_mean(self) -> Tensor:
        return mean_of_positives(self.pairs, self.scale)

    def without_false_negatives(self, margin: float) -> MatrixLogits:
        self.limits = self.highest_negative(margin)
        return self


def _products(part: Pairs, anchors: Tensor, candidates: Tensor) -> Tensor:
    return compare(part.with_rows(anchors, candidates), "dot")


class SoftmaxLoss(LogitLoss):
    """A loss whose negatives count by their log-sum-exp alone."""

    @property
    def takes_weights(self) -> bool:
        return self.negative_margin is None  # the most similar positive decides who is left out

    @property
    def needs_negative(self) -> bool:
        """Whether the loss is undefined for an anchor without a negative."""
        return False

    @property
    def averages_positives(self) -> bool:
        """Whether −mean_P ℓ is a part of it, beside what hardly varies among positives."""
        return True

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
        if not self.is_tiled(pairs):
            return super().over_blocks(pairs, on_fraction)
        return self._of(TiledLogits(pairs, self.logit_scale, on_fraction), pairs)

    def _of(self, logits: MatrixLogits, pairs: Pairs) -> tuple[Tensor, Tensor]:
        """Loss and weight (n): both 0 where no positive is."""
        if self.negative_margin is not None:
            logits = logits.without_false_negatives(self.negative_margin * self.logit_scale)
        defined, value = logits.positive_number() > 0, self.formula(logits, pairs)
        if self.needs_negative:
            defined = defined & (logits.negative_number() > 0)
        return torch.where(defined, value, 0.0), defined.to(value.dtype)

    def counted(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Masks:
        if self.negative_margin is None:
            return masks
        logits = MatrixLogits(self.logits(scores, pairs), masks)
        return logits.without_false_negatives(self.negative_margin * self.logit_scale).masks

    def details(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Details:
        found = super().details(scores, masks, pairs)
        if self.negative_margin is None:
            return found
        kept = self.counted(scores, masks, pairs).negative
        return {**found, "left_out": (masks.negative & ~kept).sum(-1)}

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
        if self.negative_margin is not None:
            common["negative_margin"] = self.negative_margin
        return Kernel(**{**common, **settings})  # type: ignore[typeddict-item]
