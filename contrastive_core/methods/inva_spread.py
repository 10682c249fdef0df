"""InvaSpread (Ye et al. 2019, CVPR, arXiv 1904.03436): the batch itself, without any memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from contrastive_core import pairs
from contrastive_core.data.augmentations import to_float
from contrastive_core.data.batch import Batch
from contrastive_core.data.batch_size import fitting
from contrastive_core.methods._base import (
    DatasetInfo,
    Default,
    HeadSettings,
    Method,
)
from contrastive_core.models.encoders import HEADS
from contrastive_core.pairs.types import Pairs
from contrastive_core.registry import knob

__all__ = ["InvaSpread"]


@dataclass(frozen=True)
class Settings(HeadSettings):
    head: str = knob("linear", help="Projection from h to z.", choices=HEADS)
    dim: int = knob(128, 2, 4096, "Width of z, the rows that are compared.")
    augmented: int = knob(2, 1, 2, "Augmented views; with one the other is the image itself.")


class InvaSpread(Method):
    title: ClassVar[str] = "InvaSpread"
    year: ClassVar[int] = 2019
    paper: ClassVar[str] = "https://arxiv.org/abs/1904.03436"
    idea: ClassVar[str] = (
        "An image and its augmentation must be recognized as one; all other images of the batch "
        "must be spread apart. It is the end-to-end sibling of Inst Disc: no bank, fresh features."
    )
    compared: ClassVar[str] = "each view with the other view of its image, against the batch"
    flow: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("image", "view 1", "encoder*", "head*", "f*"),
        ("image", "view 2 or itself", "encoder*", "head*", "f̂*"),
    )
    measured_by_paper: ClassVar[str] = (
        "CIFAR-10, ResNet-18, kNN 83.6 %; without augmentation 37.4, without crop 56.2, without "
        "jitter 75.7 % (quoted; not checked against the paper itself)."
    )
    differences: ClassVar[str] = (
        "The paper's formula has m − 1 negatives and includes the row itself; the published code "
        "uses all 2m rows, leaves the row itself out and lets no gradient through candidates."
    )
    paper_recipe: ClassVar[str] = "τ 0.1, batch 128, SGD 0.03, d 128"
    default_loss: ClassVar[str] = "invariance_spread"
    loss_knobs: ClassVar[dict[str, Any]] = {"temperature": 0.1}
    Settings: ClassVar[type] = Settings

    def pairs(self, batch: Batch, generator: torch.Generator) -> Pairs:
        x = self.views(batch, self.settings.augmented, generator)  # (b, v, c, h, w)
        if self.settings.augmented == 1:
            x = torch.cat([to_float(batch.images)[:, None], x], dim=1)
        return pairs.from_views(self.encode_views(x))

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        defaults = super().defaults(facts)
        return defaults | {
            "batch_size": fitting(128, "128, as published", facts.n_train),
            "loss_knobs": (cls.loss_knobs, "τ 0.1, as published"),
        }
