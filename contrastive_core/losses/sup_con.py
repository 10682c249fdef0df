"""Supervised contrastive loss (Khosla et al. 2020, arXiv 2004.11362, eqs. 2 and 3).

`out` is the mean of the positives' log-probabilities, `in` the log of their mean; by Jensen's inequality
in ≤ out. The mean over anchors includes those with a positive. The published code's factor τ/0.07 is
applied only if `base_temperature` is given."""

from dataclasses import dataclass

from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import Kernel, knob
from contrastive_core.losses._base import Loss
from contrastive_core.losses._softmax import (
    FormulaLoss,
    MatrixLogits,
    negative_margin_knob,
    positive_share_knob,
    temperature_knob,
)
from contrastive_core.pairs.types import Pairs


@dataclass(frozen=True)
class SupCon(FormulaLoss):
    """SupCon, out: −1/|P| Σ_p log(e^{s_ip/τ}/Σ_A e^{s_ia/τ}); in: −log(1/|P| Σ_p …); w_i = 1."""

    temperature: float = temperature_knob(0.1)
    form: str = knob("out", help=N_("Mean of logs, or log of the mean."), choices=("out", "in"))
    base_temperature: float | None = knob(
        None, 0.001, 100.0, N_("Multiplies the loss by τ divided by this value (0.07 in the published code).")
    )
    normalize: bool = knob(True, help=N_("Compare unit rows (cosine)."))
    negative_margin: float | None = negative_margin_knob()
    positive_share: float | None = positive_share_knob()

    @property
    def lists_positives(self) -> bool:
        return self.form == "in"

    def at_temperature(self, temperature: float) -> Loss:
        if self.base_temperature is not None:
            raise ValueError(N_("base_temperature also makes τ a factor of the loss; remove it to learn τ"))
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
