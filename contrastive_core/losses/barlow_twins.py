"""Barlow Twins (Zbontar et al. 2021, arXiv 2103.03230, eqs. 1 and 2): make the cross-correlation matrix of two views
the identity. Each dimension correlates with itself across views (invariance, no collapse to a point) and with no other
(no collapse to few dimensions). No term belongs to a single sample: every anchor gets the value of the batch."""

from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.losses._two_views import Terms, TwoViewLoss, Views, off_diagonal

EPS = 1e-5  # added to the variance, as in BatchNorm


@dataclass(frozen=True)
class BarlowTwinsLoss(TwoViewLoss):
    """Barlow Twins: L_i = Σ_j (1 − C_jj)² + λ Σ_{j≠k} C_jk², C = Âᵀ B̂ / n of columns standardized over the batch;
    w_i = 1."""

    off_diagonal: float = knob(0.005, 0.0, 10.0, N_("λ: weight of the terms off the diagonal."))

    def terms(self, views: Views, seed: int) -> Terms:
        c = standardized(views, views.a).mT @ standardized(views, views.b) / views.number  # (d, d)
        on, off = (1 - c.diagonal()).square().sum(), off_diagonal(c)
        parts = {"correlation": c, "on_diagonal": on, "off_diagonal": off}
        return Terms(on + self.off_diagonal * off, torch.zeros_like(views.known), parts)


def standardized(views: Views, rows: Tensor) -> Tensor:
    """Standardize each column of rows (k, d) to mean 0 and variance 1 over the images."""
    centered = views.centered(rows)
    variance = centered.square().sum(0) / views.number
    return centered * torch.rsqrt(variance + EPS)
