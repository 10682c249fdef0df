"""LeJEPA (Balestriero & LeCun 2025, arXiv 2511.08544): views move to their mean, and z is standard normal."""

import dataclasses

import torch

from contrastive_core.base.messages import N_
from contrastive_core.data.batch_loader import Batch
from contrastive_core.methods._base import Method, Rows, WideHeadSettings
from contrastive_core.pairs.types import Pairs

SEEDS = 1 << 31


class LeJEPA(Method):
    Settings = WideHeadSettings
    loss_knobs_reason = N_("λ 0.05, as published")

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        made = super().relate(rows, batch, generator)
        seed = torch.randint(SEEDS, (), generator=generator, device=generator.device)  # for this step's directions
        return dataclasses.replace(made, seed=int(seed))
