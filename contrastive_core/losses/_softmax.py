"""Sums that the softmax losses share: log-sum-exps over positives, negatives and both.

Also what the loss puts on each pair, and the *effective number of negatives*: the exponential of
the entropy of the softmax over an anchor's negatives (after Wang & Liu 2021, arXiv 2012.09740).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from contrastive_core.losses._base import Loss
from contrastive_core.similarity import masked_logsumexp, masked_mean
from contrastive_core.types import Masks, Pairs

__all__ = ["SoftmaxLoss", "all_in_one", "effective_negatives", "own_positive", "softmax_over"]


class SoftmaxLoss(Loss):
    """A loss over logits: what is common to the explanations of the family."""

    def logits(self, scores: Tensor, pairs: Pairs) -> Tensor:
        """Scores (n, w) as the softmax sees them."""
        return scores / getattr(self, "temperature", 1.0)

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        return softmax_over(self.logits(scores, pairs), masks.positive | masks.negative)

    def details(self, scores: Tensor, masks: Masks, pairs: Pairs) -> dict[str, Any]:
        entropy, number = effective_negatives(self.logits(scores, pairs), masks.negative)
        return {"negative_entropy": entropy, "effective_negatives": number}

    def _kernel(self, **settings: Any) -> dict[str, Any]:
        temperature = getattr(self, "temperature", None)
        return {
            "family": "softmax",
            "knob": None if temperature is None else "temperature",
            "temperature": 1.0 if temperature is None else temperature,
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


def all_in_one(logits: Tensor, masks: Masks) -> Tensor:
    """log Σ_{A(i)} e^ℓ − mean_P ℓ: every positive against one denominator; (n)."""
    lse = masked_logsumexp(logits, masks.positive | masks.negative)
    return lse - masked_mean(logits, masks.positive)


def own_positive(logits: Tensor, masks: Masks) -> Tensor:
    """mean_P [log(e^{ℓ_p} + Σ_N e^ℓ) − ℓ_p]: the other positives left out; (n)."""
    negatives = masked_logsumexp(logits, masks.negative)[:, None]  # (n, 1)
    safe = logits.masked_fill(~masks.positive, 0.0)
    return masked_mean(torch.logaddexp(safe, negatives.expand_as(safe)) - safe, masks.positive)
