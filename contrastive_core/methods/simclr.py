"""SimCLR (Chen et al. 2020, arXiv 2002.05709): two views, an MLP head, the batch as negatives."""

from dataclasses import dataclass

import torch

from contrastive_core import pairs
from contrastive_core.data.batch_loader import Batch
from contrastive_core.messages import N_
from contrastive_core.methods._base import HeadSettings, Method, Rows
from contrastive_core.methods._published import LARS, LIGHTLY, SIMCLR_VIEWS
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.cards import MethodCard, Published
from contrastive_core.registry import knob


@dataclass(frozen=True)
class Settings(HeadSettings):
    views: int = knob(2, 2, 8, N_("Views of each image."))


class SimCLR(Method):
    card = MethodCard(
        title=N_("SimCLR"),
        year=2020,
        paper="https://arxiv.org/abs/2002.05709",
        idea=N_(
            "Pull two augmented views of an image together and push everything else in the batch away. Strong "
            "augmentation and a projection head, dropped after training, matter most."
        ),
        compared=N_("every view with every other view of the batch"),
        flow=(("image", N_("view 1"), "encoder*", "head*", "z₁*"), ("image", N_("view 2"), "encoder*", "head*", "z₂*")),
        measured_by_paper=N_(
            "CIFAR-10, ResNet-18, 200 epochs, kNN 84.7 to 84.8 % (lightly's benchmark). ImageNet τ 0.05 / 0.1 / 0.5 "
            "/ 1: 59.7 / 64.4 / 60.7 / 58.0 %. A nonlinear head gains 3 points over a linear one and more than 10 "
            "over none."
        ),
        differences=N_(
            "The published loss averages over all 2N views. Code that sets every target to column 0 is right for two "
            "views only. LARS and batches of 4,096 are not used here."
        ),
        paper_recipe=N_("batch 256 to 4,096, τ 0.5 (CIFAR) or 0.1, d 128; crop, color, blur"),
        default_loss="nt_xent",
        loss_knobs={"temperature": 0.2},
        uses=("negatives", "large batch"),
        builds_on=(("inva_spread", N_("the batch itself as negatives")),),
        published={
            "cifar": Published(
                **LIGHTLY, method_knobs={"hidden": 512, "dim": 128, "head_bn": True}, loss_knobs={"temperature": 0.5}
            ),
            "imagenet": Published(  # 2002.05709, section 2.2, and README.md of google-research/simclr
                **LARS,
                source=N_("SimCLR's paper on ImageNet with ResNet-50"),
                lr=0.3,
                weight_decay=1e-6,
                epochs=1000,
                method_knobs={"hidden": 2048, "dim": 128, "head_bn": True},
                loss_knobs={"temperature": 0.1},
                views=SIMCLR_VIEWS,
            ),
        },
    )
    Settings = Settings
    loss_knobs_reason = N_("τ 0.2: the paper's 0.5 is slower in short runs")

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        x = self.views(batch, self.settings.views, generator)  # (b, v, c, h, w)
        return (self.encode_views(x),)  # (b, v, e)

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        return pairs.from_views(rows[0])
