"""SimCLR (Chen et al. 2020, arXiv 2002.05709): two views, an MLP head, and negatives from the batch."""

from dataclasses import dataclass

import torch

from contrastive_core import pairs
from contrastive_core.base.cards import read_method_card
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.data.batch_loader import Batch
from contrastive_core.methods._base import HeadSettings, Method, Rows
from contrastive_core.pairs.types import Pairs


@dataclass(frozen=True)
class Settings(HeadSettings):
    views: int = knob(2, 2, 8, N_("Views of each image."))


class SimCLR(Method):
    card = read_method_card("simclr")
    Settings = Settings
    loss_knobs_reason = N_("τ 0.2: the paper's 0.5 is slower in short runs")

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        x = self.views(batch, self.settings.views, generator)  # (b, v, c, h, w)
        return (self.encode_views(x),)  # (b, v, e)

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        return pairs.from_views(rows[0])
