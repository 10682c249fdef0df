"""Base classes of softmax losses: logits, and two ways to compute their log-sum-exp.

A loss of this family writes its `formula` once, in the terms of its paper: log-sum-exps over
positives, negatives or both, and means over positives. `MatrixLogits` computes them from the matrix,
`TiledLogits` tile by tile without it; `over_tiles` chooses by the number of scores.

The *effective number of negatives* is the exponential of the entropy of the shares that an anchor's negatives have
in its gradient (after Wang & Liu 2021, arXiv 2012.09740). For a plain softmax the shares are its weights."""

import dataclasses
from abc import abstractmethod
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from contrastive_core.base.device import is_free_to_read
from contrastive_core.base.messages import N_
from contrastive_core.base.progress import OnFraction, ignore_fraction
from contrastive_core.base.registry import Kernel, knob, knobs_of
from contrastive_core.losses._base import BLOCK, Details, Loss, Result, in_blocks
from contrastive_core.ops.similarity import (
    compare,
    deterministic_gather,
    masked_logsumexp,
    masked_mean,
    masked_sum,
    softmax_over,
)
from contrastive_core.ops.tiles import SOFTPLUS, Tiles, tiled_logsumexp, tiled_sum
from contrastive_core.pairs.types import Masks, Pairs

TILED_FROM = 1 << 17  # scores (0.5 MB in float32); below it the dense formula costs at most 0.5 ms more
CONCENTRATES = N_("A low value concentrates the gradient on the most similar negatives.")
LISTED = 32  # maximum size of a group whose positives are listed one by one


def temperature_knob(default: float, help: str = CONCENTRATES) -> Any:
    """Return the setting τ, on a logarithmic scale."""
    return knob(default, 0.001, 100.0, help, log=True)


def negative_margin_knob() -> Any:
    """Return the setting for the margin above a positive from which a negative is assumed to be false."""
    return knob(
        None,
        -2.0,
        2.0,
        N_("Excludes negatives that are more similar than the positive by this margin, because they may be false."),
    )


def positive_share_knob() -> Any:
    """Return the setting for the share of a positive's similarity above which a negative is assumed to be false."""
    return knob(
        None,
        0.0,
        2.0,
        N_("Excludes negatives with more than this share of the positive's similarity. 0.95 is a common value."),
    )


class LogitLoss(Loss):
    """A loss over logits ℓ = ±s/τ, with its gradient on each score."""

    @property
    def temperature(self) -> float:
        """The temperature τ; a setting of most losses."""
        return 1.0

    @property
    def logit_scale(self) -> float:
        """The factor ±1/τ of the scores."""
        return (1 if self.score == "dot" else -1) / self.temperature

    @property
    def negative_margin(self) -> float | None:
        """The margin above the positives beyond which a negative is left out; a setting of some losses."""
        return None

    @property
    def positive_share(self) -> float | None:
        """The share of the positives' similarity beyond which a negative is left out; a setting of some losses."""
        return None

    @property
    def limit(self) -> tuple[float, float] | None:
        """The share of the highest positive logit, and the margin above it, beyond which a negative is left out; None
        if all stay."""
        if self.negative_margin is None and self.positive_share is None:
            return None
        share, margin = self.positive_share, self.negative_margin or 0.0
        return 1.0 if share is None else share, margin * self.logit_scale

    def logits(self, scores: Tensor, pairs: Pairs) -> Tensor:
        """Return the logits (n, w) of scores."""
        return scores * self.logit_scale

    def counted(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Masks:
        """Return the masks without the negatives that the loss leaves out."""
        return masks

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        masks = self.counted(scores, masks, pairs)
        return softmax_over(self.logits(scores, pairs), masks.positive | masks.negative)

    def push_shares(self, scores: Tensor, negative: Tensor, pairs: Pairs) -> Tensor:
        """Return each negative's share of its anchor's push (n, w); the shares sum to 1."""
        return softmax_over(self.logits(scores, pairs), negative)

    def details(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Details:
        """Return the entropy (nats) of the shares of the push on each anchor's negatives, and its exponential; 0
        without negatives; (n) each."""
        masks = self.counted(scores, masks, pairs)
        p = self.push_shares(scores, masks.negative, pairs)
        entropy = torch.special.entr(p).sum(-1)
        number = torch.where(masks.negative.any(-1), entropy.exp(), 0.0)
        return {"negative_entropy": entropy, "effective_negatives": number}


class MatrixLogits:
    """Logits (n, w) of some anchors, and the sums and means that formulas need."""

    def __init__(self, values: Tensor, masks: Masks) -> None:
        self.values, self.masks = values, masks

    @property
    def of_positives(self) -> tuple[Tensor, Tensor]:
        """Logits (n, k) of the columns with positives, and the mask (n, k) of the positives."""
        return self.values, self.masks.positive

    def logsumexp(self, relation: str, times: float = 1.0) -> Tensor:
        """Return log Σ e^(times · ℓ) (n) over "positive", "negative" or "compared" candidates (both)."""
        positive, negative, _ = self.masks
        mask = {"positive": positive, "negative": negative, "compared": positive | negative}[relation]
        return masked_logsumexp(times * self.values, mask)

    def sum_softplus(self, relation: str, bias: Tensor, sign: int = 1) -> Tensor:
        """Return Σ log(1 + e^(sign · (ℓ + bias))) (n) over "positive" or "negative" candidates."""
        logits, mask = self.of_positives if relation == "positive" else (self.values, self.masks.negative)
        return masked_sum(-logsigmoid(-sign * (logits + bias)), mask)

    def positive_number(self) -> Tensor:
        """Return |P(i)| (n), the number of positives."""
        return self.masks.positive.sum(-1)

    def negative_number(self) -> Tensor:
        """Return |N(i)| (n), the number of negatives."""
        return self.masks.negative.sum(-1)

    def positive_mean(self) -> Tensor:
        """Return the mean of ℓ over positives (n)."""
        return masked_mean(*self.of_positives)

    def cross_entropies(self, rest: Tensor) -> Tensor:
        """Return log(e^ℓ_ip + e^rest_ip) − ℓ_ip of every positive (n, k). Args: rest: (n, k) or (n)."""
        logits, positive = self.of_positives
        each = torch.where(positive, logits, 0.0)
        rest = rest if rest.ndim == each.ndim else rest[:, None].expand_as(each)
        return torch.logaddexp(each, rest) - each

    def mean_over_positives(self, each: Tensor) -> Tensor:
        """Return the mean over p ∈ P(i) of a value (n, k) per positive; (n)."""
        return masked_mean(each, self.of_positives[1])

    def mean_cross_entropy(self, rest: Tensor) -> Tensor:
        """Return the mean over p ∈ P(i) of log(e^ℓ_ip + e^rest_i) − ℓ_ip; (n)."""
        return self.mean_over_positives(self.cross_entropies(rest))

    def highest_negative(self, share: float, margin: float) -> Tensor:
        """Return share · max_P ℓ + margin (n), detached; a negative above it is assumed to be false."""
        logits, positive = self.of_positives
        if not logits.shape[1]:
            return logits.new_full((len(logits),), torch.inf)
        highest = logits.detach().masked_fill(~positive, -torch.inf).amax(-1)
        return torch.where(highest == -torch.inf, torch.inf, share * highest + margin)

    def without_false_negatives(self, share: float, margin: float) -> "MatrixLogits":
        """Return the logits without the negatives above share · max_P ℓ + margin."""
        false = self.values.detach() > self.highest_negative(share, margin)[:, None]
        return MatrixLogits(self.values, self.masks._replace(negative=self.masks.negative & ~false))


class TiledLogits(MatrixLogits):
    """`MatrixLogits` for pairs related by id, with memory that grows with n + m."""

    def __init__(self, pairs: Pairs, scale: float, on_fraction: OnFraction = ignore_fraction) -> None:
        self.pairs, self.scale, self.on_fraction = pairs, scale, on_fraction
        self.limits: Tensor | None = None

    @cached_property
    def of_positives(self) -> tuple[Tensor, Tensor]:
        order, first, last = self.pairs.group_places
        most = most_in_a_group(self.pairs)
        assert most is not None
        at = first[:, None] + torch.arange(most, device=first.device)  # (n, k): the candidates of the anchor's group
        near = dataclasses.replace(self.pairs, columns=order[at.clamp_max(len(order) - 1)])
        products = in_blocks(lambda part, a, c: compare(part.with_rows(a, c), "dot"), near)
        return self.scale * torch.cat(products), near.masks().positive & (at < last[:, None])

    def logsumexp(self, relation: str, times: float = 1.0) -> Tensor:
        if relation == "positive":
            logits, positive = self.of_positives
            return masked_logsumexp(times * logits, positive)
        if self.limits is None:
            return tiled_logsumexp(self.pairs, times * self.scale, relation, self.on_fraction)
        limits = times * self.limits
        negatives = tiled_logsumexp(self.pairs, times * self.scale, "negative", self.on_fraction, limits)
        return negatives if relation == "negative" else torch.logaddexp(self.logsumexp("positive", times), negatives)

    def sum_softplus(self, relation: str, bias: Tensor, sign: int = 1) -> Tensor:
        if relation == "positive":
            return super().sum_softplus(relation, bias, sign)
        tiles = Tiles(self.pairs, sign * self.scale, relation)
        return tiled_sum(tiles, SOFTPLUS, sign * bias, self.on_fraction)

    def positive_number(self) -> Tensor:
        return self.pairs.relation_counts[0]

    def negative_number(self) -> Tensor:
        return self.pairs.relation_counts[1]

    def positive_mean(self) -> Tensor:
        """Return the mean of ℓ over P(i) (n), from the sums of the groups, in O((n + m)·d)."""
        pairs = self.pairs
        if views := pairs.views:
            of_image = pairs.anchors.unflatten(0, (-1, views))  # (images, views, d)
            itself = torch.eye(views, dtype=torch.bool, device=of_image.device)
            total = (of_image @ of_image.mT).masked_fill(itself, 0).sum(-1).flatten()
            return (self.scale / max(1, views - 1)) * total
        number, (itself, own) = pairs.relation_counts[0], pairs.own_candidate
        groups, (order, first, last) = pairs.group_keys[1], pairs.group_places
        of_candidate = first if pairs.symmetric and not pairs.across else torch.searchsorted(groups[order], groups)
        x = pairs.candidates * pairs.as_positive[:, None]  # (m, d)
        sums = x.new_zeros(len(groups) + 1, x.shape[1])  # of groups, at their first place
        sums.index_add_(0, of_candidate, x)
        in_group = deterministic_gather(sums, torch.where(last > first, first, len(groups)))  # last: no group
        total = (pairs.anchors * in_group).sum(1)
        total = total - itself * (pairs.anchors * deterministic_gather(pairs.candidates, own)).sum(1)
        return torch.where(number > 0, self.scale * total / number.clamp_min(1), 0.0)

    def without_false_negatives(self, share: float, margin: float) -> MatrixLogits:
        self.limits = self.highest_negative(share, margin)
        return self


class FormulaLoss(LogitLoss):
    """A loss whose formula needs only sums over positives and over negatives, not single logits."""

    @property
    def lists_positives(self) -> bool:
        """Whether the formula needs the logit of each positive, not only their mean."""
        return False

    @abstractmethod
    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        """Return the loss (n) of the anchors for which it is defined; any value for the others."""

    def is_defined(self, logits: MatrixLogits) -> Tensor:
        """Return whether the loss of each anchor is defined (n): by default, whether it has a positive."""
        return logits.positive_number() > 0

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Result:
        return self.of_logits(MatrixLogits(self.logits(scores, pairs), masks), pairs)

    def over_tiles(self, pairs: Pairs, on_fraction: OnFraction) -> Result | None:
        least = TILED_FROM if pairs.anchors.device.type == "cpu" else BLOCK
        if len(pairs) * pairs.width < least or self.score != "dot" or not pairs.by_id:
            return None
        if self.lists_positives or self.limit:
            most = most_in_a_group(pairs)
            if most is None or most > LISTED:
                return None
        return self.of_logits(TiledLogits(pairs, self.logit_scale, on_fraction), pairs)

    def of_logits(self, logits: MatrixLogits, pairs: Pairs) -> Result:
        """Return loss and weight (n), both 0 if the loss is undefined."""
        if self.limit:
            logits = logits.without_false_negatives(*self.limit)
        defined, value = self.is_defined(logits), self.formula(logits, pairs)
        return torch.where(defined, value, 0.0), defined.to(value.dtype)

    def counted(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Masks:
        if not self.limit:
            return masks
        return MatrixLogits(self.logits(scores, pairs), masks).without_false_negatives(*self.limit).masks

    def details(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Details:
        found = super().details(scores, masks, pairs)
        if not self.limit:
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
        if self.positive_share is not None:
            common["positive_share"] = self.positive_share
        return Kernel(**{**common, **settings})  # type: ignore[typeddict-item]


def most_in_a_group(pairs: Pairs) -> int | None:
    """Return the size of the largest group of candidates of an anchor; None if counting would wait for a device."""
    if pairs.group_size is not None:
        return pairs.group_size
    if not is_free_to_read(pairs.candidate_groups):
        return None
    first, last = pairs.group_places[1:]
    return int((last - first).max()) if len(pairs) else 0
