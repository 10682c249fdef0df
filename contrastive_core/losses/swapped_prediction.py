"""SwAV's loss (Caron et al. 2020, arXiv 2006.09882, eqs. 1 and 2): predict the cluster code of the other view.

The candidates are prototypes. The method gives each anchor a code, `pairs.targets`, computed from its other view. A
code holds a share for each prototype. Without codes the target is uniform over the positives, which is the supervised
softmax."""

from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core.base.registry import Kernel
from contrastive_core.losses._softmax import LogitLoss, temperature_knob
from contrastive_core.losses.nt_xent import NTXent
from contrastive_core.ops.similarity import masked_logsumexp
from contrastive_core.pairs.types import Masks, Pairs


@dataclass(frozen=True)
class SwappedPrediction(LogitLoss):
    """SwAV: L_i = −Σ_k q_ik log softmax_k(s_i/τ) over all candidates k; w_i = 1 if there is a code or a positive."""

    needs_more_inputs = True
    normalize = True

    temperature: float = temperature_knob(0.1)

    def kernel(self) -> Kernel | None:
        return NTXent(temperature=self.temperature).kernel()  # without codes both formulas are equal

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        logits, positive = self.logits(scores, pairs), masks.positive  # (n, w)
        if pairs.targets is None:
            q = positive.to(logits) / positive.sum(-1, keepdim=True).clamp_min(1)
        else:
            q = pairs.targets.to(logits)
        total = masked_logsumexp(logits, positive | masks.negative)  # (n)
        defined = q.sum(-1) > 0
        return torch.where(defined, total, 0.0) - (q * logits).sum(-1), defined.to(scores.dtype)
