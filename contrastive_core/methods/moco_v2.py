"""MoCo v2 (Chen et al. 2020, arXiv 2003.04297): MoCo v1 with an MLP head, blur and a cosine schedule."""

import dataclasses

from contrastive_core.base.messages import N_, message
from contrastive_core.methods._asymmetric import MoCo, MoCoSettings
from contrastive_core.methods._base import DatasetInfo, Default


class MoCoV2(MoCo):
    Settings = MoCoSettings
    temperature_reason = N_("as published")

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        defaults = super().defaults(facts)
        if facts.image_shape[1] > 16:
            recipe, why = defaults["recipe"]
            blurred = dataclasses.replace(recipe, blur=0.5, blur_high=1.0)
            defaults["recipe"] = (blurred, message("{why}; blur 0.5, as aug+ of the paper", why=why))
        return defaults
