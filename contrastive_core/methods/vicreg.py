"""VICReg (Bardes et al. 2022, arXiv 2105.04906): similar views, variance in every dimension, no covariance."""

from contrastive_core.base.messages import N_
from contrastive_core.methods._base import Method, WideHeadSettings


class VICReg(Method):
    Settings = WideHeadSettings
    loss_knobs_reason = N_("25, 25 and 1, as published")
