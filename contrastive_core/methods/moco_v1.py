"""MoCo v1 (He et al. 2020, arXiv 1911.05722): a queue of keys as a dictionary, a linear head."""

from dataclasses import dataclass

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.methods._asymmetric import MoCo, MoCoSettings
from contrastive_core.models.encoders import HEADS


@dataclass(frozen=True)
class Settings(MoCoSettings):
    head: str = knob("linear", help=N_("Projection from h to z."), choices=HEADS)


class MoCoV1(MoCo):
    Settings = Settings
    temperature_reason = N_("as its authors' CIFAR-10 code")
