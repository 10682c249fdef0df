"""MoCo v2 (Chen et al. 2020, arXiv 2003.04297): v1 with an MLP head, blur, a cosine schedule."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

from contrastive_core.methods._base import DatasetInfo, Default
from contrastive_core.methods._moco import MoCo, MoCoSettings

__all__ = ["MoCoV2"]


@dataclass(frozen=True)
class Settings(MoCoSettings):
    pass


class MoCoV2(MoCo):
    title: ClassVar[str] = "MoCo v2"
    year: ClassVar[int] = 2020
    paper: ClassVar[str] = "https://arxiv.org/abs/2003.04297"
    idea: ClassVar[str] = (
        "SimCLR's head and augmentations, in MoCo's queue: no large batch is needed. "
        "Three small changes, each of which helps."
    )
    compared: ClassVar[str] = "a query with the key of its own image, against the queue alone"
    flow: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("image", "view q", "encoder*", "MLP head*", "q*"),
        ("image", "view k", "key encoder", "key head", "k"),
        ("queue of older keys",),
    )
    updates: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("encoder", "key encoder", "EMA m"),
        ("MLP head", "key head", "EMA m"),
        ("k", "queue of older keys", "enqueue"),
    )
    measured_by_paper: ClassVar[str] = (
        "ImageNet linear: v1 60.6, + MLP 66.2, + augmentation 63.4, both 67.3 (not checked "
        "against the paper itself), + cosine 67.5 %."
    )
    differences: ClassVar[str] = (
        "Blur is left out below 16 pixels, where it removes the image. All else as MoCo v1."
    )
    paper_recipe: ClassVar[str] = "K 65,536, m 0.999, τ 0.2, MLP head, blur, cosine, batch 256"
    default_loss: ClassVar[str] = "info_nce"
    loss_knobs: ClassVar[dict[str, Any]] = {"temperature": 0.2}
    Settings: ClassVar[type] = Settings

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        defaults = cls.moco_defaults(super().defaults(facts), facts.n_train, 0.2, "as published")
        if facts.image_shape[1] > 16:
            recipe, why = defaults["recipe"]
            blurred = dataclasses.replace(recipe, blur=0.5, blur_high=1.0)
            defaults["recipe"] = (blurred, f"{why}; blur 0.5, as aug+ of the paper")
        return defaults
