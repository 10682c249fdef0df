"""Robust InfoNCE, less sensitive to noisy positives and false negatives (Chuang et al. 2022, arXiv 2201.04309, eq. 5).

As q → 0 it becomes InfoNCE plus log λ; at q = 1 the terms of positives and negatives are exponentials without a
logarithm."""

import math
from dataclasses import dataclass

from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import Kernel, knob
from contrastive_core.losses._softmax import CONCENTRATES, FormulaLoss, MatrixLogits
from contrastive_core.pairs.types import Pairs


@dataclass(frozen=True)
class RobustInfoNCE(FormulaLoss):
    """Robust InfoNCE: L_i = mean over p of (−e^{q s_ip/τ} + (λ(e^{s_ip/τ} + Σ_N e^{s_ik/τ}))^q)/q; w_i = 1."""

    normalize = True
    lists_positives = True

    temperature: float = knob(0.5, 0.05, 100.0, CONCENTRATES, log=True)
    q: float = knob(0.5, 0.001, 1.0, N_("Near 0: InfoNCE. 1: most robust against false pairs."))
    density_weight: float = knob(0.01, 0.0001, 1.0, N_("λ: weight of the denominator."), log=True)

    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        values, positive = logits.of_positives
        contrast = logits.cross_entropies(logits.logsumexp("negative"))  # log(e^ℓ_p + Σ_N e^ℓ) − ℓ_p
        grown = (self.q * (contrast + math.log(self.density_weight))).expm1()  # e^−qℓ_p of both terms
        return logits.mean_over_positives((self.q * values.masked_fill(~positive, 0.0)).exp() * grown / self.q)

    def kernel(self) -> Kernel:
        return Kernel(
            family="robust",
            knob="temperature",
            temperature=self.temperature,
            sign=1,
            q=self.q,
            density_weight=self.density_weight,
        )
