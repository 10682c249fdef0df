"""SupCon (Khosla et al. 2020, arXiv 2004.11362): every view of every image of a class belongs
together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from contrastive_core import pairs
from contrastive_core.data.batch import Batch
from contrastive_core.methods._base import DatasetInfo, Default, HeadSettings, Method
from contrastive_core.pairs.types import Pairs
from contrastive_core.registry import knob

__all__ = ["SupCon"]


@dataclass(frozen=True)
class Settings(HeadSettings):
    views: int = knob(2, 1, 8, "Views of each image.")


class SupCon(Method):
    title: ClassVar[str] = "SupCon"
    year: ClassVar[int] = 2020
    paper: ClassVar[str] = "https://arxiv.org/abs/2004.11362"
    idea: ClassVar[str] = (
        "With labels, all images of a class are positives of each other, in every view. "
        "It is SimCLR whose images have been told their names."
    )
    compared: ClassVar[str] = "every view with every view; same class attracts, other classes repel"
    flow: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("image, label", "view 1", "encoder*", "head*", "z₁*"),
        ("image, label", "view 2", "encoder*", "head*", "z₂*"),
    )
    measured_by_paper: ClassVar[str] = (
        "CIFAR-10, 1,000 epochs: 96.0 % (ResNet-50, paper), 93.8 % (ResNet-18, solo-learn's "
        "benchmark); quoted, not checked against their sources."
    )
    differences: ClassVar[str] = (
        "The formula sums over anchors, the published code averages them and multiplies by τ/0.07; "
        "here the mean over anchors that have a positive, and no factor unless asked for."
    )
    paper_recipe: ClassVar[str] = "τ 0.1, MLP head, d 128, 1,000 epochs, batch 1,024 and more"
    default_loss: ClassVar[str] = "sup_con"
    loss_knobs: ClassVar[dict[str, Any]] = {"temperature": 0.2}
    needs_labels: ClassVar[bool] = True
    Settings: ClassVar[type] = Settings

    def pairs(self, batch: Batch, generator: torch.Generator) -> Pairs:
        x = self.views(batch, self.settings.views, generator)  # (b, v, c, h, w)
        z = self.encode_views(x)  # (b, v, e)
        return pairs.from_views(z, batch.labels)

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        why = "τ 0.2: with 0.1 short runs sit at the log of the batch before they leave it"
        return super().defaults(facts) | {"loss_knobs": (cls.loss_knobs, why)}
