"""Soft nearest neighbor loss (Salakhutdinov & Hinton 2007, AISTATS; Frosst et al. 2019,
arXiv 1902.01889, eq. 1): measures how entangled the classes are at scale τ."""

from dataclasses import dataclass

from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import Kernel, knob
from contrastive_core.losses._softmax import FormulaLoss, MatrixLogits
from contrastive_core.pairs.types import Pairs


@dataclass(frozen=True)
class SoftNearestNeighbor(FormulaLoss):
    """Soft nearest neighbors: L_i = −log(Σ_{j∈P(i)} e^{−f_ij/τ} / Σ_{j∈A(i)} e^{−f_ij/τ}); w_i = 1."""

    lists_positives = True

    temperature: float = knob(1.0, 0.001, 100.0, N_("Scale of the neighborhood."), log=True)
    distance: str = knob("squared", help=N_("Squared Euclidean, or 1 − cosine."), choices=("squared", "cosine"))

    @property
    def normalize(self) -> bool:
        return self.distance == "cosine"

    @property
    def score(self) -> str:
        return "squared_distance" if self.distance == "squared" else "dot"

    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        # With cosines ℓ = s/τ stands for −(1 − s)/τ: the ratio is the same.
        return logits.logsumexp("compared") - logits.logsumexp("positive")

    def kernel(self) -> Kernel:
        return self._kernel(aggregate="sum", sign=-1 if self.distance == "squared" else 1)
