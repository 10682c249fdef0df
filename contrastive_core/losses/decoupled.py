"""Decoupled contrastive loss (Yeh et al. 2022, arXiv 2110.06848, eqs. 5 and 6): InfoNCE whose positive is outside the
denominator, so that an easy positive does not weaken the push of the negatives.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core.distributed.collectives import all_reduce_sum
from contrastive_core.losses._softmax import MatrixLogits, SoftmaxLoss, temperature_knob
from contrastive_core.messages import N_
from contrastive_core.ops.similarity import compare
from contrastive_core.pairs.types import Pairs
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.records.cards import Kernel, LossCard
from contrastive_core.registry import knob


@dataclass(frozen=True)
class Decoupled(SoftmaxLoss):
    """L_i = mean over p of −c_ip s_ip/τ + log Σ_{k∈N(i)} e^{s_ik/τ}; c = 1, or 2 − e^{s_ip/σ} / mean over all positive
    pairs of e^{s/σ}, detached; w_i = 1."""

    card = LossCard(
        title=N_("Decoupled"),
        year=2022,
        paper="https://arxiv.org/abs/2110.06848",
        formula=(
            r"L_i = -\frac{1}{|P(i)|}\sum_{p\in P(i)}c_{ip}\frac{s_{ip}}{\tau}"
            r"+\log\sum_{k\in N(i)} e^{s_{ik}/\tau}"
        ),
        summary=N_(
            "InfoNCE without the positive in its denominator. Negatives push an anchor as hard when its positive is "
            "already similar, which helps small batches."
        ),
    )

    temperature: float = temperature_knob(0.1)
    weighting: str = knob(
        "none", help=N_("Weigh all positives alike, or dissimilar ones more."), choices=("none", "von_mises")
    )
    sigma: float = knob(0.5, 0.05, 10.0, N_("Scale of the weights: small ones differ more."), log=True)

    @property
    def normalize(self) -> bool:
        return True

    @property
    def needs_negative(self) -> bool:
        return True

    @property
    def lists_positives(self) -> bool:
        return self.weighting == "von_mises"

    @property
    def needs_whole_batch(self) -> bool:
        return self.weighting == "von_mises"  # the weights are relative to all positive pairs

    @property
    def takes_weights(self) -> bool:
        return self.weighting == "none"

    def over_blocks(self, pairs: Pairs, on_fraction: OnFraction = ignore_fraction) -> tuple[Tensor, Tensor]:
        if self.weighting == "none" or self.is_tiled(pairs):
            return super().over_blocks(pairs, on_fraction)
        return self.per_anchor(compare(pairs, self.score), pairs.masks(), pairs)

    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        negatives = logits.logsumexp("negative")  # log Σ_N e^ℓ
        if self.weighting == "none":
            return negatives - logits.positive_mean()
        values, positive = logits.of_positives  # (n, k)
        return negatives - logits.mean_over_positives(self._weights(values, positive) * values)

    def _weights(self, values: Tensor, positive: Tensor) -> Tensor:
        """2 − e^{s/σ} / mean over all positive pairs, of every process, of e^{s/σ}; (n, k), detached."""
        s = (values.detach() * self.temperature).masked_fill(~positive, -torch.inf)
        grown = ((s - 1) / self.sigma).exp()  # e^{s/σ}, all scaled alike: s ≤ 1
        total = all_reduce_sum(torch.stack([grown.sum(), positive.sum().to(grown.dtype)]))
        mean = total[0] / total[1].clamp_min(1)
        return torch.where(positive, 2 - grown / torch.where(mean > 0, mean, 1.0), 0.0)

    def kernel(self) -> Kernel:
        return self._kernel(positive="out", weighting=self.weighting, sigma=self.sigma)
