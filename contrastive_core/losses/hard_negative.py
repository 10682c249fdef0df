"""Hard negatives get larger weights and false negatives are discounted (Robinson et al. 2021, arXiv 2010.04592, eq. 4).

With `beta` 0 all negatives have the same weight: the debiased loss (Chuang et al. 2020, arXiv 2007.00224). The weights
have gradients, as in the authors' code."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import Kernel, knob
from contrastive_core.losses._softmax import FormulaLoss, MatrixLogits, softmax_over, temperature_knob
from contrastive_core.pairs.types import Masks, Pairs


@dataclass(frozen=True)
class HardNegative(FormulaLoss):
    """The loss with hard negatives: L_i = mean over p of −log(e^{s_ip/τ} / (e^{s_ip/τ} + G)), K = |N(i)|,
    G = K max((Σ_k ω_k e^{s_ik/τ} − τ⁺ e^{s_ip/τ})/(1 − τ⁺), e^{−1/τ}); w_i = 1."""

    lists_positives = True

    temperature: float = temperature_knob(0.5)
    beta: float = knob(1.0, 0.0, 10.0, N_("Extra weight of similar negatives; 0: all have the same weight."))
    tau_plus: float = knob(0.1, 0.0, 0.9, N_("Expected share of false negatives."))
    normalize: bool = knob(True, help=N_("Compare unit rows (cosine)."))

    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        number = logits.negative_number()  # K
        mean = logits.logsumexp("negative", 1 + self.beta)  # log Σ_k ω_k e^ℓ_k, once log Σ_k e^βℓ_k is subtracted
        log_number = number.clamp_min(1).to(mean.dtype).log()
        below = logits.logsumexp("negative", self.beta) if self.beta else log_number
        some = number > 0
        mean = torch.where(some, mean, 0.0) - torch.where(some, below, 0.0)
        positives = logits.of_positives[0].masked_fill(~logits.of_positives[1], 0.0)  # (n, k)
        false = self.tau_plus * (positives - mean[:, None]).clamp_max(80.0).exp()
        rest = torch.where(false < 1, false, 0.0)
        estimate = mean[:, None] + torch.log1p(-rest) - math.log1p(-self.tau_plus)
        least = -1 / self.temperature
        negatives = torch.where((false < 1) & (estimate > least), estimate, least) + log_number[:, None]  # log G
        negatives = torch.where(some[:, None], negatives, -torch.inf)
        return logits.mean_cross_entropy(negatives)  # mean_p log(e^ℓ_p + G) − ℓ_p

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        """Return the softmax in which a negative counts K ω_k times."""
        logits = self.logits(scores, pairs)
        log_omega = (self.beta * logits).masked_fill(~masks.negative, -torch.inf).log_softmax(-1)
        number = masks.negative.sum(-1, keepdim=True).clamp_min(1).to(logits.dtype).log()
        weighted = torch.where(masks.negative, logits + log_omega + number, logits)
        return softmax_over(weighted, masks.positive | masks.negative)

    def push_shares(self, scores: Tensor, negative: Tensor, pairs: Pairs) -> Tensor:
        logits = self.logits(scores, pairs)
        tilted, flat = (softmax_over(times * logits, negative) for times in (1 + self.beta, self.beta))
        push = ((1 + self.beta) * tilted - self.beta * flat).abs()  # of log Σ ω e^ℓ, with the gradient of ω
        return push / push.sum(-1, keepdim=True).clamp_min(torch.finfo(push.dtype).tiny)

    def kernel(self) -> Kernel:
        return self._kernel(denominator="own_positive", negatives="hard", beta=self.beta, tau_plus=self.tau_plus)
