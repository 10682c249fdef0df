"""Sigmoid loss of image and text (Zhai et al. 2023, arXiv 2303.15343, eq. 1): binary classification of each pair.

Written as y (s − b_rel)/τ, its logit has the relative bias b_rel = −bτ, the cosine above which a pair counts as
matching. If positives exceed b_rel + m and negatives stay below b_rel − m, for a margin m > 0, the loss falls to zero
with τ (Bangachev et al., arXiv 2509.18552).

The mean over the anchors of one tower is the paper's 1/n Σ_i Σ_j. A learned bias is passed with the pairs:
loss(pairs, temperature=tau, bias=b)."""

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import Kernel, knob
from contrastive_core.losses._softmax import FormulaLoss, MatrixLogits, softmax_over, temperature_knob
from contrastive_core.pairs.types import Masks, Pairs


@dataclass(frozen=True)
class SigLIP(FormulaLoss):
    """SigLIP: L_i = Σ_{j∈A(i)} log(1 + e^{−y_ij (s_ij/τ + b)}), y = 1 for P(i), −1 for N(i); w_i = 1."""

    lists_positives = True

    temperature: float = temperature_knob(0.1, N_("Scales the logits."))
    bias: float = knob(-10.0, -30.0, 10.0, N_("Added to each logit. Negative: most pairs do not belong together."))
    normalize: bool = knob(True, help=N_("Compare unit rows (cosine)."))

    def with_bias(self, pairs: Pairs, bias: Tensor) -> Pairs:
        return dataclasses.replace(pairs, bias=bias)

    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        bias = pairs.anchors.new_full((), self.bias) if pairs.bias is None else pairs.bias.to(pairs.anchors.dtype)
        attraction = logits.sum_softplus("positive", bias, sign=-1)  # Σ_P log(1 + e^−(ℓ + b))
        return attraction + logits.sum_softplus("negative", bias)  # Σ_N log(1 + e^(ℓ + b))

    def is_defined(self, logits: MatrixLogits) -> Tensor:
        return (logits.positive_number() > 0) | (logits.negative_number() > 0)

    def biased_logits(self, scores: Tensor, pairs: Pairs) -> Tensor:
        return scores / self.temperature + (self.bias if pairs.bias is None else pairs.bias)

    def push_shares(self, scores: Tensor, negative: Tensor, pairs: Pairs) -> Tensor:
        return softmax_over(torch.nn.functional.logsigmoid(self.biased_logits(scores, pairs)), negative)

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        """Return the classification error of each pair, 1 − σ(y ℓ)."""
        x = self.biased_logits(scores, pairs)
        return torch.where(masks.positive, (-x).sigmoid(), torch.where(masks.negative, x.sigmoid(), 0.0))

    def kernel(self) -> Kernel:
        return Kernel(family="sigmoid", knob="temperature", temperature=self.temperature, sign=1, bias=self.bias)
