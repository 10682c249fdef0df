"""NT-Xent, the loss of SimCLR (Chen et al. 2020, arXiv 2002.05709, eq. 1).

With more than two views an anchor has several positives, and the loss is their mean. `denominator`
says whether the other positives are in the denominator of each positive (`all`) or not (`own_positive`).
With two views both are equal."""

from dataclasses import dataclass

from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import Kernel, knob
from contrastive_core.losses._softmax import (
    FormulaLoss,
    MatrixLogits,
    negative_margin_knob,
    positive_share_knob,
    temperature_knob,
)
from contrastive_core.pairs.types import Pairs


@dataclass(frozen=True)
class NTXent(FormulaLoss):
    """NT-Xent: L_i = mean over p of −log(e^{s_ip/τ} / Σ_{a∈A(i)} e^{s_ia/τ}); w_i = 1."""

    temperature: float = temperature_knob(0.5)
    denominator: str = knob(
        "all",
        help=N_("Include an anchor's other positives in the denominator of each positive."),
        choices=("all", "own_positive"),
    )
    normalize: bool = knob(True, help=N_("Compare unit rows (cosine)."))
    negative_margin: float | None = negative_margin_knob()
    positive_share: float | None = positive_share_knob()

    @property
    def lists_positives(self) -> bool:
        return self.denominator == "own_positive"

    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        if self.denominator == "all":
            return logits.logsumexp("compared") - logits.positive_mean()  # log Σ_A e^ℓ − mean_p ℓ_p
        negatives = logits.logsumexp("negative")  # log Σ_N e^ℓ
        return logits.mean_cross_entropy(negatives)  # mean_p log(e^ℓ_p + Σ_N e^ℓ) − ℓ_p

    def kernel(self) -> Kernel:
        return self._kernel(denominator=self.denominator)
