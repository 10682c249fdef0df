"""Multi-class N-pair loss (Sohn 2016, "Improved Deep Metric Learning with Multi-class N-pair
Loss Objective", NIPS, eq. 5), on raw rows with an L2 penalty on the anchor's length.
"""

from dataclasses import dataclass

from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import Kernel, knob
from contrastive_core.losses._softmax import FormulaLoss, MatrixLogits
from contrastive_core.pairs.types import Pairs


@dataclass(frozen=True)
class NPair(FormulaLoss):
    """The N-pair loss: L_i = mean over p of log(1 + Σ_{k∈N(i)} exp(f_i·f_k − f_i·f_p)) + l2·‖f_i‖²; w_i = 1."""

    lists_positives = True

    l2_penalty: float = knob(0.0, 0.0, 10.0, N_("Weight of the squared length of the anchor."))
    normalize: bool = knob(False, help=N_("Compare unit rows (cosine)."))

    def formula(self, logits: MatrixLogits, pairs: Pairs) -> Tensor:
        negatives = logits.logsumexp("negative")  # log Σ_N e^ℓ
        contrast = logits.mean_cross_entropy(negatives)  # mean_p log(1 + Σ_N e^(ℓ_k − ℓ_p))
        return contrast + self.l2_penalty * pairs.anchors.square().sum(-1)

    def kernel(self) -> Kernel | None:
        if self.l2_penalty:
            return None  # the browser has no row lengths
        return self._kernel(denominator="own_positive")
