"""Non-parametric softmax over the whole memory bank (Wu et al. 2018, arXiv 1805.01978, eq. 2).

Every image is a class of its own, and its slot in the bank is the weight vector of the class."""

from dataclasses import dataclass

from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import Kernel, knob
from contrastive_core.losses._softmax import FormulaLoss, MatrixLogits, temperature_knob
from contrastive_core.pairs.types import Pairs


@dataclass(frozen=True)
class InstanceSoftmax(FormulaLoss):
    """Softmax over the bank: L_i = −log(e^{v_i·f_i/τ} / Σ_j e^{v_j·f_i/τ}) over every slot v of the bank; w_i = 1."""

    needs_more_inputs = True

    temperature: float = temperature_knob(0.07)
    normalize: bool = knob(True, help=N_("Compare unit rows (cosine)."))

    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        return logits.logsumexp("compared") - logits.positive_mean()  # log Σ_j e^ℓ_j − ℓ_i

    def kernel(self) -> Kernel:
        return self._kernel()
