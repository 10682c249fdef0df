"""What Barlow Twins, VICReg and LeJEPA share: two views through one encoder and a wide head with BatchNorm."""

from dataclasses import dataclass

import torch

from contrastive_core import pairs
from contrastive_core.data.batch_loader import Batch
from contrastive_core.messages import N_
from contrastive_core.methods._base import HeadSettings, Method, Rows
from contrastive_core.pairs.types import Pairs
from contrastive_core.registry import knob


@dataclass(frozen=True)
class WideHeadSettings(HeadSettings):
    """Settings of a head whose dimensions the loss looks at."""

    dim: int = knob(256, 2, 8192, N_("Width of z, whose dimensions are compared."))
    hidden: int = knob(256, 2, 8192, N_("Width of a nonlinear head's hidden layers."))
    depth: int = knob(3, 2, 4, N_("Layers of a nonlinear head."))
    head_bn: bool = knob(True, help=N_("BatchNorm in the head's hidden layers."))


class DimensionMethod(Method):
    """A Method whose loss compares dimensions of two views."""

    Settings = WideHeadSettings

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        return (self.encode_views(self.views(batch, 2, generator)),)  # z (b, 2, e)

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        return pairs.from_views(rows[0])
