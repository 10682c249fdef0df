"""Barlow Twins (Zbontar et al. 2021, arXiv 2103.03230): each dimension correlates only with itself across two views."""

from contrastive_core.base.messages import N_
from contrastive_core.methods._base import Method, WideHeadSettings


class BarlowTwins(Method):
    Settings = WideHeadSettings
    loss_knobs_reason = N_("λ 0.005, as published")
