"""SupCon (Khosla et al. 2020, arXiv 2004.11362): all views of all images of a class are positives of each other."""

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
    views: int = knob(2, 1, 8, N_("Views of each image."))


class SupCon(Method):
    card = read_method_card("sup_con")
    Settings = Settings
    loss_knobs_reason = N_("τ 0.2: with 0.1, short runs stay near log(batch size) for many steps")

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        x = self.views(batch, self.settings.views, generator)  # (b, v, c, h, w)
        return (self.encode_views(x),)  # (b, v, e)

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        return pairs.from_views(rows[0], batch.labels)
