"""Soft nearest neighbor loss (Salakhutdinov & Hinton 2007, AISTATS; Frosst et al. 2019,
arXiv 1902.01889, eq. 1): how entangled the classes are at scale τ.
"""

from dataclasses import dataclass

from torch import Tensor

from contrastive_core.losses._softmax import MatrixLogits, SoftmaxLoss
from contrastive_core.messages import N_
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.cards import Kernel, LossCard
from contrastive_core.registry import knob


@dataclass(frozen=True)
class SoftNearestNeighbor(SoftmaxLoss):
    """L_i = −log(Σ_{j∈P(i)} e^{−f_ij/τ} / Σ_{j∈A(i)} e^{−f_ij/τ}); w_i = 1."""

    card = LossCard(
        title=N_("Soft nearest neighbor"),
        year=2007,
        paper="https://arxiv.org/abs/1902.01889",
        formula=r"L_i = -\log\frac{\sum_{j\in P(i)} e^{-f_{ij}/\tau}}{\sum_{j\in A(i)} e^{-f_{ij}/\tau}}",
        summary=N_(
            "The probability that a neighbor drawn by distance has the same class. One near positive is enough: "
            "classes do not collapse to a point."
        ),
        by_label=True,
    )

    temperature: float = knob(1.0, 0.001, 100.0, N_("Scale of the neighborhood."), log=True)
    distance: str = knob("squared", help=N_("Squared Euclidean, or 1 − cosine."), choices=("squared", "cosine"))

    @property
    def normalize(self) -> bool:
        return self.distance == "cosine"

    @property
    def score(self) -> str:
        return "squared_distance" if self.distance == "squared" else "dot"

    @property
    def averages_positives(self) -> bool:
        return False

    @property
    def lists_positives(self) -> bool:
        return True

    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        # With cosines ℓ = s/τ stands for −(1 − s)/τ: the ratio is the same.
        return logits.logsumexp("compared") - logits.logsumexp("positive")

    def kernel(self) -> Kernel:
        return self._kernel(aggregate="sum", sign=-1 if self.distance == "squared" else 1)
