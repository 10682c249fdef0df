"""SimCLR (Chen et al. 2020, arXiv 2002.05709): two views, an MLP head, and negatives from the batch."""

from dataclasses import dataclass

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.methods._base import HeadSettings, Method


@dataclass(frozen=True)
class Settings(HeadSettings):
    views: int = knob(2, 2, 8, N_("Views of each image."))


class SimCLR(Method):
    Settings = Settings
    loss_knobs_reason = N_("τ 0.2: the paper's 0.5 is slower in short runs")
