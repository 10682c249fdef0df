"""Decoupled contrastive loss (Yeh et al. 2022, arXiv 2110.06848, eqs. 5 and 6): InfoNCE without the positive in the
denominator, so an easy positive does not weaken the push on the negatives."""

from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import Kernel, knob
from contrastive_core.losses._softmax import FormulaLoss, MatrixLogits, temperature_knob
from contrastive_core.ops.collectives import all_reduce_sum
from contrastive_core.pairs.types import Pairs


@dataclass(frozen=True)
class Decoupled(FormulaLoss):
    """The decoupled loss: L_i = mean over p of −c_ip s_ip/τ + log Σ_{k∈N(i)} e^{s_ik/τ}; c = 1, or 2 − e^{s_ip/σ} /
    mean over all positive pairs of e^{s/σ}, detached; w_i = 1."""

    normalize = True

    temperature: float = temperature_knob(0.1)
    weighting: str = knob(
        "none", help=N_("Weigh all positives alike, or dissimilar ones more."), choices=("none", "von_mises")
    )
    sigma: float = knob(0.5, 0.05, 10.0, N_("Scale of the weights: a smaller value makes them differ more."), log=True)

    @property
    def lists_positives(self) -> bool:
        return self.weighting == "von_mises"

    @property
    def needs_whole_batch(self) -> bool:
        return self.weighting == "von_mises"  # the weights are relative to all positive pairs

    def is_defined(self, logits: MatrixLogits) -> Tensor:
        return super().is_defined(logits) & (logits.negative_number() > 0)

    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        negatives = logits.logsumexp("negative")  # log Σ_N e^ℓ
        if self.weighting == "none":
            return negatives - logits.positive_mean()
        values, positive = logits.of_positives  # (n, k)
        return negatives - logits.mean_over_positives(self._weights(values, positive) * values)

    def _weights(self, values: Tensor, positive: Tensor) -> Tensor:
        """Return 2 − e^{s/σ} / mean over all positive pairs of all processes of e^{s/σ}; (n, k), detached."""
        s = (values.detach() * self.temperature).masked_fill(~positive, -torch.inf)
        grown = ((s - 1) / self.sigma).exp()  # e^{s/σ}, with a common scale because s ≤ 1
        total = all_reduce_sum(torch.stack([grown.sum(), positive.sum().to(grown.dtype)]))
        mean = total[0] / total[1].clamp_min(1)
        return torch.where(positive, 2 - grown / torch.where(mean > 0, mean, 1.0), 0.0)

    def kernel(self) -> Kernel:
        return self._kernel(positive="out", weighting=self.weighting, sigma=self.sigma)
