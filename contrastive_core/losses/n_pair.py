"""Multi-class N-pair loss (Sohn 2016, "Improved Deep Metric Learning with Multi-class N-pair
Loss Objective", NIPS, eq. 5), on raw rows with an L2 penalty on the anchor's length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from contrastive_core.losses._softmax import SoftmaxLoss, own_positive
from contrastive_core.ops import tiled_logsumexp
from contrastive_core.pairs.types import Masks, Pairs
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.registry import knob

__all__ = ["NPair"]


@dataclass(frozen=True)
class NPair(SoftmaxLoss):
    """L_i = mean over p of log(1 + Σ_{k∈N(i)} exp(f_i·f_k − f_i·f_p)) + l2·‖f_i‖²; w_i = 1."""

    title: ClassVar[str] = "N-pair"
    paper: ClassVar[str] = (
        "https://papers.nips.cc/paper/6200-improved-deep-metric-learning-with-multi-class-n-pair-"
        "loss-objective"
    )
    year: ClassVar[int] = 2016
    by_label: ClassVar[bool] = True
    formula: ClassVar[str] = (
        r"L_i = \frac{1}{|P(i)|}\sum_{p\in P(i)}\log\Big(1+\sum_{k\in N(i)}"
        r"e^{f_i\cdot f_k - f_i\cdot f_p}\Big) + \lambda\lVert f_i\rVert^2"
    )
    summary: ClassVar[str] = (
        "One positive against one negative of every other class at once, instead of one triplet. "
        "Rows are not normalized; a penalty keeps them short."
    )

    l2_penalty: float = knob(0.0, 0.0, 10.0, "Weight of the squared length of the anchor.")
    normalize: bool = knob(False, help="Compare unit rows (cosine).")

    def from_logits(self, logits: Tensor, positive: Tensor, negatives: Tensor) -> Tensor:
        return own_positive(logits, positive, negatives)

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        value, weight = super().per_anchor(scores, masks, pairs)
        return value + self._penalty(pairs), weight

    def from_some(
        self, scores: Tensor, masks: Masks, pairs: Pairs, positives: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        value, weight = super().from_some(scores, masks, pairs, positives)
        return value + self._penalty(pairs), weight

    def over_blocks(
        self, pairs: Pairs, on_fraction: OnFraction = ignore_fraction
    ) -> tuple[Tensor, Tensor]:
        value, weight = super().over_blocks(pairs, on_fraction)
        tiled = tiled_logsumexp.should_tile(pairs)  # then `per_anchor` was not asked
        return (value + self._penalty(pairs) if tiled else value), weight

    def _penalty(self, pairs: Pairs) -> Tensor:
        return self.l2_penalty * pairs.anchors.square().sum(-1)

    def kernel(self) -> dict[str, Any] | None:
        if self.l2_penalty:
            return None  # the browser has scores, not lengths
        return self._kernel(denominator="own_positive")
