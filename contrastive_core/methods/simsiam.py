"""SimSiam (Chen & He 2021, arXiv 2011.10566): BYOL without the momentum encoder. Order and letters of the paper's
algorithm 1: x₁, x₂ → z → p, and D(p₁, z₂)/2 + D(p₂, z₁)/2 with no gradient through z."""

from dataclasses import dataclass

import torch

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.data.batch_loader import Batch
from contrastive_core.methods._asymmetric import PredictorSettings, across_views, make_predictor, predicted
from contrastive_core.methods._base import Method, Rows
from contrastive_core.pairs.types import Pairs


@dataclass(frozen=True)
class Settings(PredictorSettings):
    stop_gradient: bool = knob(True, help=N_("Stop the gradient through z. Without this, the embedding collapses."))


class SimSiam(Method):
    Settings = Settings
    loss_knobs_reason = N_("−cos, as published")

    def build(self) -> None:
        self.predictor = make_predictor(self.settings, self.head.out_dim)

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        z = self.encode_views(self.views(batch, 2, generator))  # (b, 2, e)
        return predicted(self.predictor, z), z

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        p, z = rows
        return across_views(p, z.detach() if self.settings.stop_gradient else z)
