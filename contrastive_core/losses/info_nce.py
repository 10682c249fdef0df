"""InfoNCE, the loss of CPC (van den Oord et al. 2018, arXiv 1807.03748, eq. 4).

Each positive is compared with the negatives only. In expectation, with one positive and negatives sampled independently
from the marginal, the mutual information of anchor and positive is I ≥ log(1 + |N|) − L. The bound cannot exceed
log(1 + |N|). With several positives, false negatives or `negative_margin` it is not a bound. The bilinear critic
zᵀ W_k c belongs to its method, which passes W_k c as anchors, with `critic="dot"` and τ = 1."""

from dataclasses import dataclass

from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import Kernel, knob
from contrastive_core.losses._base import LossOutput
from contrastive_core.losses._softmax import (
    FormulaLoss,
    MatrixLogits,
    negative_margin_knob,
    positive_share_knob,
    temperature_knob,
)
from contrastive_core.pairs.types import Pairs


@dataclass(frozen=True)
class InfoNCE(FormulaLoss):
    """InfoNCE: L_i = mean over p of −log(e^{s_ip/τ} / Σ_{j∈{p}∪N(i)} e^{s_ij/τ}); w_i = 1."""

    lists_positives = True

    temperature: float = temperature_knob(0.07)
    critic: str = knob("cosine", help=N_("How rows are compared."), choices=("cosine", "dot"))
    negative_margin: float | None = negative_margin_knob()
    positive_share: float | None = positive_share_knob()

    @property
    def normalize(self) -> bool:
        return self.critic == "cosine"

    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        negatives = logits.logsumexp("negative")  # log Σ_N e^ℓ
        return logits.mean_cross_entropy(negatives)  # mean_p log(e^ℓ_p + Σ_N e^ℓ) − ℓ_p

    def extras(self, value: Tensor, weight: Tensor, pairs: Pairs) -> dict[str, float]:
        if not (weight > 0).any():
            return {"mutual_information_bound": 0.0, "mutual_information_bound_limit": 0.0}
        most = LossOutput((1 + pairs.relation_counts[1]).log().to(value.dtype), weight).value
        bound = most - LossOutput(value, weight).value
        return {"mutual_information_bound": float(bound.detach()), "mutual_information_bound_limit": float(most)}

    def kernel(self) -> Kernel:
        return self._kernel(denominator="own_positive")
