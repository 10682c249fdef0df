"""InvaSpread (Ye et al. 2019, CVPR, arXiv 1904.03436): the batch itself, without any memory."""

from dataclasses import dataclass

import torch

from contrastive_core import pairs
from contrastive_core.data.augmentations import to_float
from contrastive_core.data.batch_loader import Batch
from contrastive_core.messages import N_
from contrastive_core.methods._base import DatasetInfo, Default, HeadSettings, Method, Rows
from contrastive_core.methods._published import INST_DISC_VIEWS
from contrastive_core.models.encoders import HEADS
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.cards import MethodCard, Published, fitting
from contrastive_core.registry import knob


@dataclass(frozen=True)
class Settings(HeadSettings):
    head: str = knob("linear", help=N_("Projection from h to z."), choices=HEADS)
    dim: int = knob(128, 2, 4096, N_("Width of z, the rows that are compared."))
    augmented: int = knob(2, 1, 2, N_("Augmented views; with one the other is the image itself."))


class InvaSpread(Method):
    card = MethodCard(
        title=N_("InvaSpread"),
        year=2019,
        paper="https://arxiv.org/abs/1904.03436",
        idea=N_(
            "An image and its augmentation are recognized as one; all other images of the batch are spread apart. It "
            "is Inst Disc without a memory bank: features are always fresh."
        ),
        compared=N_("each view with the other view of its image, against the batch"),
        flow=(
            ("image", N_("view 1"), "encoder*", "head*", "f*"),
            ("image", N_("view 2 or itself"), "encoder*", "head*", "f̂*"),
        ),
        measured_by_paper=N_(
            "CIFAR-10, ResNet-18, kNN 83.6 %; without augmentation 37.4, without crop 56.2, without jitter 75.7 % "
            "(quoted; not checked against the paper itself)."
        ),
        differences=N_(
            "The paper's formula has m − 1 negatives and includes the row itself. The published code uses all 2m "
            "rows without the row itself, and sends no gradient through candidates."
        ),
        paper_recipe=N_("τ 0.1, batch 128, SGD 0.03, d 128"),
        default_loss="invariance_spread",
        loss_knobs={"temperature": 0.1},
        uses=("negatives", "large batch"),
        builds_on=(("inst_disc", N_("each image is a class of its own")),),
        published={
            "cifar": Published(  # demo_seen.py of the authors; its steps at 120 and 160 as in the paper
                source=N_("InvaSpread's paper on CIFAR-10 with ResNet-18"),
                optimizer="sgd",
                lr=0.03,
                per=128,
                weight_decay=5e-4,
                batch_size=128,
                epochs=200,
                schedule="steps",
                method_knobs={"dim": 128},
                views=INST_DISC_VIEWS,
            )
        },
    )
    Settings = Settings
    loss_knobs_reason = N_("τ 0.1, as published")

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        x = self.views(batch, self.settings.augmented, generator)  # (b, v, c, h, w)
        if self.settings.augmented == 1:
            x = torch.cat([to_float(batch.images)[:, None], x], dim=1)
        return (self.encode_views(x),)  # (b, 2, e)

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        return pairs.from_views(rows[0])

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        return super().defaults(facts) | {"batch_size": fitting(128, N_("128, as published"), facts.n_train)}
