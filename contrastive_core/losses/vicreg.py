"""VICReg (Bardes et al. 2022, arXiv 2105.04906, eqs. 1 to 6): invariance, variance and covariance.

As in the authors' code, the invariance is also averaged over dimensions, and the variance term is the mean over both
views. The paper's sums differ by constants, which do not fit its weights 25, 25 and 1."""

from dataclasses import dataclass

from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.losses._two_views import Terms, TwoViewLoss, Views, off_diagonal

EPS = 1e-4  # added to the variance under the root


@dataclass(frozen=True)
class VICRegLoss(TwoViewLoss):
    """VICReg: L_i = λ mean_j (a_ij − b_ij)² + μ ½(v(A) + v(B)) + ν (c(A) + c(B)); w_i = 1.

    v(Z) = mean_j max(0, γ − √(Var z_j + ε)) and c(Z) = Σ_{i≠j} Cov(Z)_ij² / d, both over the batch (n − 1)."""

    invariance: float = knob(25.0, 0.0, 100.0, N_("λ: weight of the distance between two views."))
    variance: float = knob(25.0, 0.0, 100.0, N_("μ: weight of the hinge on each dimension's deviation."))
    covariance: float = knob(1.0, 0.0, 100.0, N_("ν: weight of the covariance between dimensions."))
    deviation: float = knob(1.0, 0.0, 10.0, N_("γ: standard deviation above which a dimension is not penalized."))

    def terms(self, views: Views, seed: int) -> Terms:
        own = (views.a - views.b).square().mean(-1)  # (k)
        (v_a, c_a), (v_b, c_b) = (self._of_view(views, rows) for rows in (views.a, views.b))
        variance, covariance = (v_a + v_b) / 2, c_a + c_b
        parts = {"invariance": (views.known * own).sum() / views.number, "variance": variance, "covariance": covariance}
        return Terms(self.variance * variance + self.covariance * covariance, self.invariance * own, parts)

    def _of_view(self, views: Views, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return v and c of one view's rows (k, d)."""
        centered, n, d = views.centered(rows), views.number, rows.shape[1]
        cov = centered.mT @ centered / (n - 1).clamp_min(1)  # (d, d)
        hinge = (self.deviation - (cov.diagonal() + EPS).sqrt()).clamp_min(0)
        return hinge.mean(), off_diagonal(cov) / d
