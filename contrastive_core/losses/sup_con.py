"""Supervised contrastive loss (Khosla et al. 2020, arXiv 2004.11362, eqs. 2 and 3).

`out` takes the mean of the positives' log-probabilities, `in` the log of their mean; by Jensen
in ≤ out. The mean runs over anchors that have a positive; the published code's factor τ/0.07 is
applied only when `base_temperature` is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from contrastive_core.losses._base import Loss
from contrastive_core.losses._softmax import SoftmaxLoss, log_of_mean, shared_denominator
from contrastive_core.registry import knob

__all__ = ["SupCon"]


@dataclass(frozen=True)
class SupCon(SoftmaxLoss):
    """out: −1/|P| Σ_p log(e^{s_ip/τ}/Σ_A e^{s_ia/τ}); in: −log(1/|P| Σ_p …); w_i = 1."""

    title: ClassVar[str] = "SupCon"
    paper: ClassVar[str] = "https://arxiv.org/abs/2004.11362"
    year: ClassVar[int] = 2020
    by_label: ClassVar[bool] = True
    formula: ClassVar[str] = (
        r"L_i^{out} = -\frac{1}{|P(i)|}\sum_{p\in P(i)}\log"
        r"\frac{e^{s_{ip}/\tau}}{\sum_{a\in A(i)} e^{s_{ia}/\tau}},\quad "
        r"L_i^{in} = -\log\frac{1}{|P(i)|}\sum_{p\in P(i)}"
        r"\frac{e^{s_{ip}/\tau}}{\sum_{a\in A(i)} e^{s_{ia}/\tau}}"
    )
    summary: ClassVar[str] = (
        "All images of a class, in every view, are positives of each other. "
        "With labels equal to image ids it is NT-Xent."
    )

    temperature: float = knob(0.1, 0.001, 100.0, "Small: only the hardest count.", log=True)
    form: str = knob("out", help="Mean of logs, or log of the mean.", choices=("out", "in"))
    base_temperature: float | None = knob(
        None, 0.001, 100.0, "Multiplies the loss by τ over this (the published code: 0.07)."
    )
    normalize: bool = knob(True, help="Compare unit rows (cosine).")

    @property
    def one_denominator(self) -> bool:  # type: ignore[override]
        return self.form == "out"

    @property
    def averages_positives(self) -> bool:
        return self.form == "out"

    @property
    def scale(self) -> float:  # type: ignore[override]
        return 1.0 if self.base_temperature is None else self.temperature / self.base_temperature

    def at_temperature(self, temperature: float) -> Loss:
        if self.base_temperature is not None:
            raise ValueError("base_temperature makes τ a factor too: leave it out to learn τ")
        return super().at_temperature(temperature)

    def from_logits(self, logits: Tensor, positive: Tensor, negatives: Tensor) -> Tensor:
        if self.form == "out":
            return shared_denominator(logits, positive, negatives)
        number = positive.sum(-1).clamp_min(1).to(logits.dtype)  # |P|
        return log_of_mean(logits, positive, negatives) + number.log()

    def kernel(self) -> dict[str, Any]:
        scale = "none" if self.base_temperature is None else "tau_over_base"
        return self._kernel(aggregate=self.form, scale=scale, base=self.base_temperature)
