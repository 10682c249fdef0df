"""NT-Xent, the loss of SimCLR (Chen et al. 2020, arXiv 2002.05709, eq. 1).

With more than two views an anchor has several positives: the loss is their mean. `denominator`
says whether the other positives stand in each one's denominator (`all`) or not (`own_positive`);
for two views the two are equal.
"""

from dataclasses import dataclass

from torch import Tensor

from contrastive_core.losses._softmax import MatrixLogits, SoftmaxLoss, negative_margin_knob, temperature_knob
from contrastive_core.messages import N_
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.cards import Kernel, LossCard
from contrastive_core.registry import knob


@dataclass(frozen=True)
class NTXent(SoftmaxLoss):
    """L_i = mean over p of −log(e^{s_ip/τ} / Σ_{a∈A(i)} e^{s_ia/τ}); w_i = 1."""

    card = LossCard(
        title=N_("NT-Xent"),
        year=2020,
        paper="https://arxiv.org/abs/2002.05709",
        formula=(
            r"L_i = -\frac{1}{|P(i)|}\sum_{p\in P(i)}\log"
            r"\frac{e^{s_{ip}/\tau}}{\sum_{a\in A(i)} e^{s_{ia}/\tau}}"
        ),
        summary=N_(
            "The other views of an image must be more similar than everything else in the batch. It is a softmax "
            "over the batch, and the temperature sets how much the hardest negatives count."
        ),
    )

    temperature: float = temperature_knob(0.5)
    denominator: str = knob(
        "all",
        help=N_("Include an anchor's other positives in the denominator of each."),
        choices=("all", "own_positive"),
    )
    normalize: bool = knob(True, help=N_("Compare unit rows (cosine)."))
    negative_margin: float | None = negative_margin_knob()

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
