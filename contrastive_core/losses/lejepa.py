"""LeJEPA (Balestriero & LeCun 2025, arXiv 2511.08544): the views of an image move to their mean, and the embedding
becomes an isotropic Gaussian. Published codes differ; this formula follows the authors' minimal example:

SIGReg(Z) = mean over M random unit directions u of n Σ_t w_t |φ_n(t) − e^{−t²/2}|² e^{−t²/2}, where φ_n is the
empirical characteristic function of Z u. It is the Epps-Pulley statistic against N(0, 1), by the trapezoidal rule over
17 points t in [0, 3], counted twice for the negative half."""

from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core.base.device import send
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.losses._two_views import Terms, TwoViewLoss, Views

KNOTS, END = 17, 3.0


@dataclass(frozen=True)
class LeJEPALoss(TwoViewLoss):
    """LeJEPA: L_i = (1 − λ) mean over both views and d of (z − μ_i)² + λ ½(SIGReg(A) + SIGReg(B)); w_i = 1."""

    needs_more_inputs = True

    trade_off: float = knob(
        0.05, 0.0, 1.0, N_("λ: weight of the Gaussian term. The distance between views has weight 1 − λ.")
    )
    directions: int = knob(256, 1, 8192, N_("M: number of random directions, drawn again in each step."), log=True)

    def terms(self, views: Views, seed: int) -> Terms:
        own = (views.a - views.b).square().mean(-1) / 4  # each view is half the difference away from the mean
        u = directions(views.a, self.directions, seed)
        gaussian = (sigreg(views, views.a @ u) + sigreg(views, views.b @ u)) / 2
        parts = {"invariance": (views.known * own).sum() / views.number, "gaussian": gaussian}
        return Terms(self.trade_off * gaussian, (1 - self.trade_off) * own, parts)


def directions(like: Tensor, count: int, seed: int) -> Tensor:
    """Return random unit columns (d, M), equal on every device."""
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(like.shape[1], count, generator=generator, dtype=torch.float64)
    return send((u / u.norm(dim=0)).to(like.dtype), like.device)


def sigreg(views: Views, x: Tensor) -> Tensor:
    """Return the mean SIGReg statistic of projections (k, M)."""
    t = torch.linspace(0, END, KNOTS, dtype=x.dtype, device=x.device)
    normal, step = torch.exp(-t.square() / 2), END / (KNOTS - 1)
    known, n = views.known[:, None], views.number
    statistic = x.new_zeros(x.shape[1])
    for i in range(KNOTS):
        real = (known * (t[i] * x).cos()).sum(0) / n  # (M)
        imaginary = (known * (t[i] * x).sin()).sum(0) / n
        weight = step if i in (0, KNOTS - 1) else 2 * step
        statistic = statistic + weight * normal[i] * ((real - normal[i]).square() + imaginary.square())
    return n * statistic.mean()
