"""Soft nearest neighbor loss (Salakhutdinov & Hinton 2007, AISTATS; Frosst et al. 2019,
arXiv 1902.01889, eq. 1): how entangled the classes are at scale τ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from contrastive_core.losses._softmax import SoftmaxLoss, log_of_mean
from contrastive_core.registry import knob

__all__ = ["SoftNearestNeighbor"]


@dataclass(frozen=True)
class SoftNearestNeighbor(SoftmaxLoss):
    """L_i = −log(Σ_{j∈P(i)} e^{−f_ij/τ} / Σ_{j∈A(i)} e^{−f_ij/τ}); w_i = 1."""

    title: ClassVar[str] = "Soft nearest neighbor"
    paper: ClassVar[str] = "https://arxiv.org/abs/1902.01889"
    year: ClassVar[int] = 2007
    by_label: ClassVar[bool] = True
    formula: ClassVar[str] = (
        r"L_i = -\log\frac{\sum_{j\in P(i)} e^{-f_{ij}/\tau}}{\sum_{j\in A(i)} e^{-f_{ij}/\tau}}"
    )
    summary: ClassVar[str] = (
        "The chance that a neighbor drawn by distance has the same class. "
        "One near positive is enough: it does not pull a class into one point."
    )

    temperature: float = knob(1.0, 0.001, 100.0, "Scale of the neighborhood.", log=True)
    distance: str = knob(
        "squared", help="Squared Euclidean, or 1 − cosine.", choices=("squared", "cosine")
    )

    @property
    def normalize(self) -> bool:
        return self.distance == "cosine"

    @property
    def score(self) -> str:  # type: ignore[override]
        return "squared_distance" if self.distance == "squared" else "dot"

    @property
    def averages_positives(self) -> bool:
        return False

    def from_logits(self, logits: Tensor, positive: Tensor, negatives: Tensor) -> Tensor:
        return log_of_mean(logits, positive, negatives)  # 1 − s and −s give the same ratio

    def kernel(self) -> dict[str, Any]:
        return self._kernel(aggregate="sum", sign=-1 if self.distance == "squared" else 1)
