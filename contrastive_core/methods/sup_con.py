"""SupCon (Khosla et al. 2020, arXiv 2004.11362): all views of all images of a class are positives of each other."""

from dataclasses import dataclass

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.methods._base import HeadSettings, Method


@dataclass(frozen=True)
class Settings(HeadSettings):
    views: int = knob(2, 1, 8, N_("Views of each image."))


class SupCon(Method):
    Settings = Settings
    loss_knobs_reason = N_("τ 0.2: with 0.1, short runs stay near log(batch size) for many steps")
