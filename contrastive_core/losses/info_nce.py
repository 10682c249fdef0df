"""InfoNCE, the loss of CPC (van den Oord et al. 2018, arXiv 1807.03748, eq. 4).

Each positive against the negatives alone. A lower bound on the mutual information of anchor and
positive follows from the value: I ≥ log(1 + |N|) − L. It cannot exceed log(1 + |N|), however large I is.
The bilinear critic zᵀ W_k c belongs to its method,
which gives W_k c as anchors, with `critic="dot"` and τ = 1.
"""

from dataclasses import dataclass

from torch import Tensor

from contrastive_core.losses._group_sums import relation_counts
from contrastive_core.losses._output import LossOutput
from contrastive_core.losses._softmax import MatrixLogits, SoftmaxLoss, negative_margin_knob, temperature_knob
from contrastive_core.messages import N_
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.cards import Kernel, LossCard
from contrastive_core.registry import knob


@dataclass(frozen=True)
class InfoNCE(SoftmaxLoss):
    """L_i = mean over p of −log(e^{s_ip/τ} / Σ_{j∈{p}∪N(i)} e^{s_ij/τ}); w_i = 1."""

    card = LossCard(
        title=N_("InfoNCE"),
        year=2018,
        paper="https://arxiv.org/abs/1807.03748",
        formula=(
            r"L_i = -\frac{1}{|P(i)|}\sum_{p\in P(i)}\log"
            r"\frac{e^{s_{ip}/\tau}}{e^{s_{ip}/\tau}+\sum_{k\in N(i)} e^{s_{ik}/\tau}}"
        ),
        summary=N_(
            "Classify the true partner among all candidates. log(1 + |N|) minus the value is a lower bound on the "
            "mutual information of the two. It saturates at log(1 + |N|)."
        ),
    )

    temperature: float = temperature_knob(0.07)
    critic: str = knob("cosine", help=N_("How rows are compared."), choices=("cosine", "dot"))
    negative_margin: float | None = negative_margin_knob()

    @property
    def normalize(self) -> bool:
        return self.critic == "cosine"

    @property
    def lists_positives(self) -> bool:
        return True

    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        negatives = logits.logsumexp("negative")  # log Σ_N e^ℓ
        return logits.mean_cross_entropy(negatives)  # mean_p log(e^ℓ_p + Σ_N e^ℓ) − ℓ_p

    def extras(self, value: Tensor, weight: Tensor, pairs: Pairs) -> dict[str, float]:
        if not (weight > 0).any():
            return {"mutual_information_bound": 0.0, "mutual_information_bound_limit": 0.0}
        most = LossOutput((1 + relation_counts(pairs)[1]).log().to(value.dtype), weight).value
        bound = most - LossOutput(value, weight).value
        return {"mutual_information_bound": float(bound.detach()), "mutual_information_bound_limit": float(most)}

    def kernel(self) -> Kernel:
        return self._kernel(denominator="own_positive")
