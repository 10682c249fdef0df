"""NT-Xent, the loss of SimCLR (Chen et al. 2020, arXiv 2002.05709, eq. 1).

With more than two views an anchor has several positives: the loss is their mean. `denominator`
says whether the other positives stand in each one's denominator (`all`) or not (`own_positive`);
for two views the two are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from contrastive_core.losses._softmax import SoftmaxLoss, own_positive, shared_denominator
from contrastive_core.registry import knob

__all__ = ["NTXent"]


@dataclass(frozen=True)
class NTXent(SoftmaxLoss):
    """L_i = mean over p of −log(e^{s_ip/τ} / Σ_{a∈A(i)} e^{s_ia/τ}); w_i = 1."""

    title: ClassVar[str] = "NT-Xent"
    paper: ClassVar[str] = "https://arxiv.org/abs/2002.05709"
    year: ClassVar[int] = 2020
    formula: ClassVar[str] = (
        r"L_i = -\frac{1}{|P(i)|}\sum_{p\in P(i)}\log"
        r"\frac{e^{s_{ip}/\tau}}{\sum_{a\in A(i)} e^{s_{ia}/\tau}}"
    )
    summary: ClassVar[str] = (
        "The other views of an image must be more similar than everything else in the batch. "
        "A softmax over the batch, with the temperature deciding how much the hardest count."
    )

    temperature: float = knob(0.5, 0.001, 100.0, "Small: only the hardest count.", log=True)
    denominator: str = knob(
        "all",
        help="Whether an anchor's other positives stand in each one's denominator.",
        choices=("all", "own_positive"),
    )
    normalize: bool = knob(True, help="Compare unit rows (cosine).")

    @property
    def one_denominator(self) -> bool:  # type: ignore[override]
        return self.denominator == "all"

    def from_logits(self, logits: Tensor, positive: Tensor, negatives: Tensor) -> Tensor:
        each = shared_denominator if self.one_denominator else own_positive
        return each(logits, positive, negatives)

    def kernel(self) -> dict[str, Any]:
        return self._kernel(denominator=self.denominator)
