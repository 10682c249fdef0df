"""Invariance and spread (Ye et al. 2019, CVPR, "Unsupervised Embedding Learning via Invariant and
Spreading Instance Feature", arXiv 1904.03436).

`source` follows the published code: all views are anchors, an image is not in its own
denominator, and candidates have no gradient. `paper` follows eqs. 3 to 6: first views are anchors,
and P is the probability that a row belongs to each image. log(1 − P) is computed as a leave-one-out
log-sum-exp, because log1p(−P) is −inf in float32 at τ = 0.05."""

from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.losses._softmax import LogitLoss, temperature_knob
from contrastive_core.ops.similarity import masked_logsumexp, masked_mean
from contrastive_core.pairs.types import Masks, Pairs


@dataclass(frozen=True)
class InvarianceSpread(LogitLoss):
    """Invariance and spread: L_i = −log P(p|i) − Σ_{j∈N(i)} log(1 − P(j|i)); w_i = 1."""

    temperature: float = temperature_knob(0.1)
    form: str = knob("source", help=N_("Form of the published code, or of the paper."), choices=("source", "paper"))
    detach: bool = knob(True, help=N_("No gradient flows through candidates."))
    normalize: bool = knob(True, help=N_("Compare unit rows (cosine)."))

    @property
    def needs_whole_batch(self) -> bool:
        return self.form == "paper"  # the softmax of a column is over all first views

    def check(self, pairs: Pairs) -> str | None:
        if self.form == "paper" and not (pairs.by_id and (pairs.anchor_views == 0).any()):
            return 'form="paper" needs the views of a batch (first views are its anchors)'
        return None

    def rows(self, pairs: Pairs) -> Pairs:
        pairs = super().rows(pairs)
        if self.detach:
            pairs = pairs.with_rows(pairs.anchors, pairs.candidates.detach())
        return pairs

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        logits = scores / self.temperature  # (n, w)
        defined = masks.positive.any(-1)
        if self.form == "source":
            compared = masks.positive | masks.negative
            log_p, log_not = _log_probabilities(logits, compared, masks.negative)
            negative = masks.negative
        else:
            first = pairs.anchor_views == 0  # (n)
            images = first[:, None].expand_as(logits).mT  # (w, n): the images in the softmax
            log_p, log_not = (t.mT for t in _log_probabilities(logits.mT, images, images))
            negative = masks.negative & (pairs.candidate_views == 0)
            defined = defined & first
        log_p = torch.where(masks.positive & defined[:, None], log_p, 0.0)
        spread = torch.where(negative & defined[:, None], log_not, 0.0).sum(-1)
        return -masked_mean(log_p, masks.positive) - spread, defined.to(scores.dtype)


def _log_probabilities(logits: Tensor, mask: Tensor, log_not_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return log P and log(1 − P) of the softmax over the masked entries of each row; (r, c) each.

    Only the largest entry can exceed ½; its 1 − P is the sum of the others."""
    largest, top = logits.detach().masked_fill(~mask, -torch.inf).max(-1, keepdim=True)
    logits = logits - torch.where(largest.isinf(), 0.0, largest)  # otherwise rounding lets P exceed 1
    total = masked_logsumexp(logits, mask)[:, None]  # (r, 1)
    total = torch.where(total.isinf(), 0.0, total)
    is_top = torch.zeros_like(mask).scatter(-1, top, True)
    log_p = logits - total
    small = log_not_mask & ~is_top
    p = torch.where(small, log_p, -torch.inf).exp()  # at most ½
    others = masked_logsumexp(logits, mask & ~is_top)[:, None]
    others = torch.where(others.isinf(), 0.0, others)
    return log_p, torch.where(small, torch.log1p(-p), others - total)
