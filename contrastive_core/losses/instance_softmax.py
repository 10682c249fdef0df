"""Non-parametric softmax over the whole memory bank (Wu et al. 2018, arXiv 1805.01978, eq. 2).

Every image is a class of its own, whose weight vector is its slot of the bank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from contrastive_core.losses._softmax import SoftmaxLoss, shared_denominator
from contrastive_core.registry import knob

__all__ = ["InstanceSoftmax"]


@dataclass(frozen=True)
class InstanceSoftmax(SoftmaxLoss):
    """L_i = −log(e^{v_i·f_i/τ} / Σ_j e^{v_j·f_i/τ}) over every slot v of the bank; w_i = 1."""

    title: ClassVar[str] = "Instance softmax"
    paper: ClassVar[str] = "https://arxiv.org/abs/1805.01978"
    year: ClassVar[int] = 2018
    one_denominator: ClassVar[bool] = True
    formula: ClassVar[str] = (
        r"L_i = -\log\frac{e^{v_i\cdot f_i/\tau}}{\sum_{j=1}^{N} e^{v_j\cdot f_i/\tau}}"
    )
    summary: ClassVar[str] = (
        "Recognize the image itself among all images of the set, as if each were a class. "
        "The weights of that classifier are the stored features."
    )

    temperature: float = knob(0.07, 0.001, 100.0, "Small: only the hardest count.", log=True)
    normalize: bool = knob(True, help="Compare unit rows (cosine).")

    def from_logits(self, logits: Tensor, positive: Tensor, negatives: Tensor) -> Tensor:
        return shared_denominator(logits, positive, negatives)

    def kernel(self) -> dict[str, Any]:
        return self._kernel()
