"""The cosine embedding loss of PyTorch: 1 − s for a positive, max(0, s − margin) for a negative."""

from dataclasses import dataclass

from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.losses._base import Loss
from contrastive_core.ops.similarity import masked_sum
from contrastive_core.pairs.types import Masks, Pairs


@dataclass(frozen=True)
class CosineEmbedding(Loss):
    """L_i = mean over j ∈ A(i) of 1 − s_ij (positive) or max(0, s_ij − m) (negative); w_i = |A(i)|."""

    margin: float = knob(0.0, -1.0, 1.0, N_("Negatives with a lower cosine are ignored."))
    normalize: bool = knob(True, help=N_("Compare unit rows."))

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        pull, push = 1 - scores, (scores - self.margin).clamp_min(0)  # (n, w)
        total = masked_sum(pull, masks.positive) + masked_sum(push, masks.negative)
        number = masks.positive.sum(-1) + masks.negative.sum(-1)  # |A(i)|
        return total / number.clamp_min(1), number.to(scores.dtype)
