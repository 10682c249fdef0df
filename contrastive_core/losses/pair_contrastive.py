"""The contrastive loss on pairs (Chopra et al. 2005; Hadsell et al. 2006, CVPR, eq. 4).

Positives attract like a spring; negatives repel up to the distance of the margin:
∂L/∂x₁ = x₁ − x₂ for a positive, −(ε − D)(x₁ − x₂)/D for a negative inside the margin, 0 at
D = 0 or D ≥ ε. `hinge="squared_distance"` is the other published form, D² and max(0, ε − D²)."""

from dataclasses import dataclass

from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import Kernel, knob
from contrastive_core.losses._base import Loss
from contrastive_core.ops.similarity import masked_sum
from contrastive_core.pairs.types import Masks, Pairs


@dataclass(frozen=True)
class PairContrastive(Loss):
    """The pair loss: L_i = mean over j ∈ A(i) of ½D² (positive) or ½max(ε − D, 0)² (negative); w_i = |A(i)|."""

    score = "distance"

    margin: float = knob(1.2, 0.0, 10.0, N_("Negatives beyond this distance are ignored."))
    hinge: str = knob(
        "distance", help=N_("½max(ε−D,0)² with ½D², or max(0, ε−D²) with D²."), choices=("distance", "squared_distance")
    )
    normalize: bool = knob(False, help=N_("Compare unit rows."))

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        squared = scores.square()  # (n, w)
        if self.hinge == "distance":
            near, far = squared / 2, (self.margin - scores).clamp_min(0).square() / 2
        else:
            near, far = squared, (self.margin - squared).clamp_min(0)
        total = masked_sum(near, masks.positive) + masked_sum(far, masks.negative)
        number = masks.positive.sum(-1) + masks.negative.sum(-1)  # |A(i)|
        return total / number.clamp_min(1), number.to(scores.dtype)

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        reach = scores if self.hinge == "distance" else scores.square()
        active = masks.positive | (masks.negative & (reach < self.margin))
        return active.to(scores.dtype)

    def kernel(self) -> Kernel:
        squared = self.hinge == "squared_distance"
        return Kernel(family="hinge", knob="margin", margin=self.margin, form="pair", squared=squared)
