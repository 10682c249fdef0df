"""InvaSpread (Ye et al. 2019, CVPR, arXiv 1904.03436): negatives from the batch, without a memory."""

from dataclasses import dataclass

import torch

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import fitting, knob
from contrastive_core.data.augmentations import to_float
from contrastive_core.data.batch_loader import Batch
from contrastive_core.methods._base import DatasetInfo, Default, HeadSettings, Method, Rows
from contrastive_core.models.encoders import HEADS


@dataclass(frozen=True)
class Settings(HeadSettings):
    head: str = knob("linear", help=N_("Projection from h to z."), choices=HEADS)
    dim: int = knob(128, 2, 4096, N_("Width of z, which the loss compares."))
    augmented: int = knob(2, 1, 2, N_("Number of augmented views. With 1, the second view is the image itself."))


class InvaSpread(Method):
    Settings = Settings
    loss_knobs_reason = N_("τ 0.1, as published")

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        x = self.views(batch, self.settings.augmented, generator)  # (b, v, c, h, w)
        if self.settings.augmented == 1:
            x = torch.cat([to_float(batch.images)[:, None], x], dim=1)
        return (self.encode_views(x),)  # (b, 2, e)

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        return super().defaults(facts) | {"batch_size": fitting(128, N_("128, as published"), facts.n_train)}
