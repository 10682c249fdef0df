"""Non-parametric softmax over the whole memory bank (Wu et al. 2018, arXiv 1805.01978, eq. 2).

Every image is a class of its own, whose weight vector is its slot of the bank.
"""

from dataclasses import dataclass

from torch import Tensor

from contrastive_core.losses._softmax import MatrixLogits, SoftmaxLoss, temperature_knob
from contrastive_core.messages import N_
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.cards import Kernel, LossCard
from contrastive_core.registry import knob


@dataclass(frozen=True)
class InstanceSoftmax(SoftmaxLoss):
    """L_i = −log(e^{v_i·f_i/τ} / Σ_j e^{v_j·f_i/τ}) over every slot v of the bank; w_i = 1."""

    card = LossCard(
        title=N_("Instance softmax"),
        year=2018,
        paper="https://arxiv.org/abs/1805.01978",
        formula=r"L_i = -\log\frac{e^{v_i\cdot f_i/\tau}}{\sum_{j=1}^{N} e^{v_j\cdot f_i/\tau}}",
        summary=N_(
            "Recognize each image among all images of the data set, as if each were a class. The stored features are "
            "the weights of that classifier."
        ),
    )

    temperature: float = temperature_knob(0.07)
    normalize: bool = knob(True, help=N_("Compare unit rows (cosine)."))

    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        return logits.logsumexp("compared") - logits.positive_mean()  # log Σ_j e^ℓ_j − ℓ_i

    def kernel(self) -> Kernel:
        return self._kernel()
