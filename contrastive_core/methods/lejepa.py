"""LeJEPA (Balestriero & LeCun 2025, arXiv 2511.08544): views meet at their mean, and z is a standard normal cloud."""

import dataclasses

import torch

from contrastive_core.data.batch_loader import Batch
from contrastive_core.messages import N_
from contrastive_core.methods._base import Rows
from contrastive_core.methods._dimensions import DimensionMethod
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.cards import MethodCard

SEEDS = 1 << 31


class LeJEPA(DimensionMethod):
    card = MethodCard(
        title="LeJEPA",
        year=2025,
        paper="https://arxiv.org/abs/2511.08544",
        idea=N_(
            "Views of an image meet, and the embedding is held to a standard normal distribution, tested along random "
            "directions. One weight is all there is to choose."
        ),
        compared=N_("the views of an image with their mean, and the batch with a normal distribution"),
        flow=(
            ("image", N_("view 1"), "encoder*", "head*", "z₁*", N_("random directions")),
            ("image", N_("view 2"), "encoder*", "head*", "z₂*", N_("random directions")),
        ),
        measured_by_paper=N_("ImageNet linear, ViT-H/14: 79 % (quoted; not checked against the paper itself)."),
        differences=N_(
            "Two views, both whole; the paper adds small crops. Published codes differ in constants: see the "
            "loss's card."
        ),
        paper_recipe=N_("λ 0.05, 2 large and 6 small views, batch 512 and more, AdamW"),
        default_loss="lejepa",
        loss_knobs={"trade_off": 0.05},
        builds_on=(("vicreg", N_("terms on the batch instead of negatives")),),
    )
    loss_knobs_reason = N_("λ 0.05, as published")

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        made = super().relate(rows, batch, generator)
        seed = torch.randint(SEEDS, (), generator=generator, device=generator.device)  # of this step's directions
        return dataclasses.replace(made, seed=int(seed))
