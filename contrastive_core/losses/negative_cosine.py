"""The loss of BYOL and SimSiam: positives only, no negatives (Grill et al. 2020, arXiv 2006.07733, eq. 2;
Chen & He 2021, arXiv 2011.10566, eq. 1).

Every embedding whose positives coincide reaches the minimum, including a single point. The loss itself does not prevent
this collapse; a predictor on one side and a stop-gradient on the other do."""

from dataclasses import dataclass

from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.losses._base import Loss
from contrastive_core.ops.similarity import masked_mean
from contrastive_core.pairs.types import Masks, Pairs


@dataclass(frozen=True)
class NegativeCosine(Loss):
    """Negative cosine: L_i = mean over p ∈ P(i) of 2 − 2 s_ip (BYOL), or of −s_ip (SimSiam), of unit rows; w_i = 1."""

    detaches_targets = True
    normalize = True

    form: str = knob(
        "squared", help=N_("2 − 2s, the squared distance of unit rows, or −s."), choices=("squared", "cosine")
    )

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        s = masked_mean(scores, masks.positive)  # (n)
        value = 2 - 2 * s if self.form == "squared" else -s
        return value, masks.positive.any(-1).to(scores.dtype)

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        return masks.positive.to(scores.dtype)
