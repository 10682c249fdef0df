"""SupCon (Khosla et al. 2020, arXiv 2004.11362): every view of every image of a class belongs together."""

from dataclasses import dataclass

import torch

from contrastive_core import pairs
from contrastive_core.data.batch_loader import Batch
from contrastive_core.messages import N_
from contrastive_core.methods._base import HeadSettings, Method, Rows
from contrastive_core.methods._published import SIMSIAM_CIFAR_VIEWS
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.cards import MethodCard, Published
from contrastive_core.registry import knob


@dataclass(frozen=True)
class Settings(HeadSettings):
    views: int = knob(2, 1, 8, N_("Views of each image."))


class SupCon(Method):
    card = MethodCard(
        title=N_("SupCon"),
        year=2020,
        paper="https://arxiv.org/abs/2004.11362",
        idea=N_(
            "With labels, all images of a class are positives of each other, in every view. It is SimCLR with labels."
        ),
        compared=N_("every view with every view; same class attracts, other classes repel"),
        flow=(
            (N_("image, label"), N_("view 1"), "encoder*", "head*", "z₁*"),
            (N_("image, label"), N_("view 2"), "encoder*", "head*", "z₂*"),
        ),
        measured_by_paper=N_(
            "CIFAR-10, 1,000 epochs: 96.0 % (ResNet-50, paper), 93.8 % (ResNet-18, solo-learn's benchmark); quoted, "
            "not checked against their sources."
        ),
        differences=N_(
            "The formula sums over anchors. The published code averages them and multiplies by τ/0.07. Here the loss "
            "is the mean over anchors with a positive, with no factor by default."
        ),
        paper_recipe=N_("τ 0.1, MLP head, d 128, 1,000 epochs, batch 1,024 and more"),
        default_loss="sup_con",
        loss_knobs={"temperature": 0.2},
        needs_labels=True,
        uses=("negatives", "large batch"),
        builds_on=(("simclr", N_("views, head and softmax")), ("metric", N_("pairs by class"))),
        published={
            "cifar": Published(  # github.com/HobbitLong/SupContrast, README.md and main_supcon.py
                source=N_("SupCon's authors on CIFAR-10 with ResNet-50"),
                optimizer="sgd",
                lr=0.5,
                per=1024,
                weight_decay=1e-4,
                batch_size=1024,
                epochs=1000,
                warmup=10.0,
                method_knobs={"hidden": 2048, "dim": 128},
                loss_knobs={"temperature": 0.1},
                views=SIMSIAM_CIFAR_VIEWS,
            )
        },
    )
    Settings = Settings
    loss_knobs_reason = N_("τ 0.2: with 0.1, short runs stay near log(batch size) for many steps")

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        x = self.views(batch, self.settings.views, generator)  # (b, v, c, h, w)
        return (self.encode_views(x),)  # (b, v, e)

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        return pairs.from_views(rows[0], batch.labels)
