"""Sigmoid loss of image and text (Zhai et al. 2023, arXiv 2303.15343, eq. 1): each pair is a yes-or-no question.

The mean over the anchors of one tower is the paper's 1/n Σ_i Σ_j. A learned bias is passed with the pairs:
loss(pairs, temperature=tau, bias=b).
"""

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core.losses._softmax import LogitLoss, MatrixLogits, TiledLogits, softmax_over, temperature_knob
from contrastive_core.messages import N_
from contrastive_core.ops.similarity import compare
from contrastive_core.pairs.types import Masks, Pairs
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.records.cards import Kernel, LossCard
from contrastive_core.registry import knob


@dataclass(frozen=True)
class SigLIP(LogitLoss):
    """L_i = Σ_{j∈A(i)} log(1 + e^{−y_ij (s_ij/τ + b)}), y = 1 for P(i), −1 for N(i); w_i = 1."""

    card = LossCard(
        title=N_("SigLIP"),
        year=2023,
        paper="https://arxiv.org/abs/2303.15343",
        formula=(
            r"L_i = \sum_{j\in A(i)}\log\big(1+e^{-y_{ij}(s_{ij}/\tau+b)}\big),\quad "
            r"y_{ij} = 1 \text{ for } j\in P(i),\ -1 \text{ for } j\in N(i)"
        ),
        summary=N_(
            "Classify each pair by itself: the two belong together or not. Without a softmax, no pair depends on the "
            "others of the batch."
        ),
        family="sigmoid",
    )

    temperature: float = temperature_knob(0.1)
    bias: float = knob(-10.0, -30.0, 10.0, N_("Added to each logit. Negative: most pairs do not belong together."))
    normalize: bool = knob(True, help=N_("Compare unit rows (cosine)."))

    @property
    def takes_weights(self) -> bool:
        return True

    def with_bias(self, pairs: Pairs, bias: Tensor) -> Pairs:
        return dataclasses.replace(pairs, bias=bias)

    @property
    def lists_positives(self) -> bool:
        return True

    def over_blocks(self, pairs: Pairs, on_fraction: OnFraction = ignore_fraction) -> tuple[Tensor, Tensor]:
        bias = self._bias(pairs)
        if self.is_tiled(pairs):
            return self._of(TiledLogits(pairs, self.logit_scale, on_fraction), bias)
        values, weights = zip(*self.in_blocks(self._biased, pairs, bias, on_fraction=on_fraction), strict=True)
        return torch.cat(values), torch.cat(weights)

    def _biased(self, part: Pairs, anchors: Tensor, candidates: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        part = dataclasses.replace(part, anchors=anchors, candidates=candidates, bias=bias)
        return self.per_anchor(compare(part, self.score), part.masks(), part)

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        return self._of(MatrixLogits(scores * self.logit_scale, masks), self._bias(pairs))

    def _of(self, logits: MatrixLogits, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Σ_P log(1 + e^−(ℓ + b)) + Σ_N log(1 + e^(ℓ + b)), and the weight; (n) each."""
        value = logits.sum_softplus("positive", bias, sign=-1) + logits.sum_softplus("negative", bias)
        defined = (logits.positive_number() > 0) | (logits.negative_number() > 0)
        return value, defined.to(value.dtype)

    def _bias(self, pairs: Pairs) -> Tensor:
        return pairs.anchors.new_full((), self.bias) if pairs.bias is None else pairs.bias.to(pairs.anchors.dtype)

    def logits(self, scores: Tensor, pairs: Pairs) -> Tensor:
        return scores / self.temperature + (self.bias if pairs.bias is None else pairs.bias)

    def push_shares(self, scores: Tensor, negative: Tensor, pairs: Pairs) -> Tensor:
        return softmax_over(torch.nn.functional.logsigmoid(self.logits(scores, pairs)), negative)

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        """How wrong the answer on each pair is: 1 − σ(y ℓ)."""
        x = self.logits(scores, pairs)
        return torch.where(masks.positive, (-x).sigmoid(), torch.where(masks.negative, x.sigmoid(), 0.0))

    def kernel(self) -> Kernel:
        return Kernel(family="sigmoid", knob="temperature", temperature=self.temperature, sign=1, bias=self.bias)
