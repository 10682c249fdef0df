"""Robust InfoNCE, which noisy positives and false negatives disturb less (Chuang et al. 2022, arXiv 2201.04309, eq. 5).

As q → 0 it is InfoNCE plus log λ; at q = 1 the terms of positives and negatives are exponentials without logarithm.
"""

import math
from dataclasses import dataclass

from torch import Tensor

from contrastive_core.losses._softmax import MatrixLogits, SoftmaxLoss
from contrastive_core.messages import N_
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.cards import Kernel, LossCard
from contrastive_core.registry import knob


@dataclass(frozen=True)
class RobustInfoNCE(SoftmaxLoss):
    """L_i = mean over p of (−e^{q s_ip/τ} + (λ(e^{s_ip/τ} + Σ_N e^{s_ik/τ}))^q)/q; w_i = 1."""

    card = LossCard(
        title=N_("Robust InfoNCE"),
        year=2022,
        paper="https://arxiv.org/abs/2201.04309",
        formula=(
            r"L_i = \frac{1}{|P(i)|}\sum_{p\in P(i)}\frac{-e^{q s_{ip}/\tau}"
            r"+\big(\lambda(e^{s_{ip}/\tau}+\sum_{k\in N(i)}e^{s_{ik}/\tau})\big)^q}{q}"
        ),
        summary=N_(
            "A pair that does not belong together is pulled less the more dissimilar it is. q sets how robust the loss "
            "is: near 0 it is InfoNCE."
        ),
        family="robust",
    )

    temperature: float = knob(0.5, 0.05, 100.0, N_("Small: only the hardest count."), log=True)
    q: float = knob(0.5, 0.001, 1.0, N_("Near 0: InfoNCE. 1: most robust against false pairs."))
    density_weight: float = knob(0.01, 0.0001, 1.0, N_("λ: weight of the negatives."), log=True)

    @property
    def normalize(self) -> bool:
        return True

    @property
    def lists_positives(self) -> bool:
        return True

    @property
    def averages_positives(self) -> bool:
        return False

    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        values, positive = logits.of_positives
        contrast = logits.cross_entropies(logits.logsumexp("negative"))  # log(e^ℓ_p + Σ_N e^ℓ) − ℓ_p
        grown = (self.q * (contrast + math.log(self.density_weight))).expm1()  # e^−qℓ_p of both terms
        return logits.mean_over_positives((self.q * values.masked_fill(positive == 0, 0.0)).exp() * grown / self.q)

    def kernel(self) -> Kernel:
        return Kernel(
            family="robust",
            knob="temperature",
            temperature=self.temperature,
            sign=1,
            q=self.q,
            density_weight=self.density_weight,
        )
