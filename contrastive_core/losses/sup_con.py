"""Supervised contrastive loss (Khosla et al. 2020, arXiv 2004.11362, eqs. 2 and 3).

`out` takes the mean of the positives' log-probabilities, `in` the log of their mean; by Jensen
in ≤ out. The mean runs over anchors that have a positive; the published code's factor τ/0.07 is
applied only when `base_temperature` is given.
"""

from dataclasses import dataclass

from torch import Tensor

from contrastive_core.losses._base import Loss
from contrastive_core.losses._softmax import MatrixLogits, SoftmaxLoss, negative_margin_knob, temperature_knob
from contrastive_core.messages import N_
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.cards import Kernel, LossCard
from contrastive_core.registry import knob


@dataclass(frozen=True)
class SupCon(SoftmaxLoss):
    """out: −1/|P| Σ_p log(e^{s_ip/τ}/Σ_A e^{s_ia/τ}); in: −log(1/|P| Σ_p …); w_i = 1."""

    card = LossCard(
        title=N_("SupCon"),
        year=2020,
        paper="https://arxiv.org/abs/2004.11362",
        formula=(
            r"L_i^{out} = -\frac{1}{|P(i)|}\sum_{p\in P(i)}\log"
            r"\frac{e^{s_{ip}/\tau}}{\sum_{a\in A(i)} e^{s_{ia}/\tau}},\quad "
            r"L_i^{in} = -\log\frac{1}{|P(i)|}\sum_{p\in P(i)}"
            r"\frac{e^{s_{ip}/\tau}}{\sum_{a\in A(i)} e^{s_{ia}/\tau}}"
        ),
        summary=N_(
            "All images of a class, in every view, are positives of each other. With labels equal to image ids it is "
            "NT-Xent."
        ),
        by_label=True,
    )

    temperature: float = temperature_knob(0.1)
    form: str = knob("out", help=N_("Mean of logs, or log of the mean."), choices=("out", "in"))
    base_temperature: float | None = knob(
        None, 0.001, 100.0, N_("Multiplies the loss by τ over this (the published code: 0.07).")
    )
    normalize: bool = knob(True, help=N_("Compare unit rows (cosine)."))
    negative_margin: float | None = negative_margin_knob()

    @property
    def averages_positives(self) -> bool:
        return self.form == "out"

    @property
    def lists_positives(self) -> bool:
        return self.form == "in"

    def at_temperature(self, temperature: float) -> Loss:
        if self.base_temperature is not None:
            raise ValueError(N_("base_temperature makes τ a factor too: leave it out to learn τ"))
        return super().at_temperature(temperature)

    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        compared = logits.logsumexp("compared")  # log Σ_A e^ℓ
        if self.form == "out":
            value = compared - logits.positive_mean()
        else:
            number = logits.positive_number().clamp_min(1).to(compared.dtype)  # |P|
            value = compared - logits.logsumexp("positive") + number.log()
        return value if self.base_temperature is None else value * (self.temperature / self.base_temperature)

    def kernel(self) -> Kernel:
        scale = "none" if self.base_temperature is None else "tau_over_base"
        return self._kernel(aggregate=self.form, scale=scale, base=self.base_temperature)
