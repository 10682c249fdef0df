"""Metric learning: class-balanced batches and any supervised loss of the registry. One view per image. Triplet
(1503.03832), lifted structure (1511.06452), N-pair (Sohn 2016), pairs (Hadsell 2006), soft nearest neighbor
(1902.01889) and SupCon all run on these pairs."""

from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core import pairs
from contrastive_core.data.batch_loader import Batch, BatchShare
from contrastive_core.device import send
from contrastive_core.messages import N_
from contrastive_core.methods._base import DatasetInfo, Default, HeadSettings, Method, Rows
from contrastive_core.models.encoders import HEADS
from contrastive_core.ops.similarity import normalize
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.cards import MethodCard, fitting
from contrastive_core.registry import knob


@dataclass(frozen=True)
class Settings(HeadSettings):
    head: str = knob("linear", help=N_("Projection from h to z."), choices=HEADS)
    batches: str = knob(
        "class_balanced",
        help=N_("Many of each class; one pair of each; or random pairs with their hardest negatives."),
        choices=("class_balanced", "n_pair", "lifted"),
    )


class Metric(Method):
    card = MethodCard(
        title=N_("Metric learning"),
        year=2005,
        paper="https://doi.org/10.1109/CVPR.2005.202",
        idea=N_(
            "Learn a distance in which images of a class are near and others far. Batches contain several images of "
            "each class: every anchor has positives and negatives."
        ),
        compared=N_("images of a batch by class: pairs, triplets, or all at once"),
        flow=((N_("balanced batch"), "view", "encoder*", "head*", "z*"),),
        measured_by_paper=N_("Different sets in each paper: no figure to compare with."),
        differences=N_(
            "The loss's `hinge` chooses the squared hinge on the distance (Hadsell) or the hinge on the squared "
            "distance (notes). Distances are per pair, never over the batch as one vector. Batches for lifted "
            "structure take their hard negatives from extra images outside the pairs."
        ),
        paper_recipe=N_("of FaceNet (triplet, 2015): margin 0.2, unit rows, semi-hard mining, large batches"),
        default_loss="triplet",
        loss_knobs={"margin": 0.2, "average": "active"},
        needs_labels=True,
        batch="class_balanced",
        least_batch=4,
        uses=("negatives",),
    )
    Settings = Settings
    loss_knobs_reason = N_("mean over active triplets: others have no gradient")

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        x = self.views(batch, 1, generator)[:, 0]  # (b, c, h, w)
        if self.settings.batches != "lifted":
            return self(x), batch.labels
        chosen = self.hardest(x, batch.labels, batch.global_rows)
        return self(x[chosen]), batch.labels[chosen]

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        z, labels = rows
        return pairs.from_labels(z, labels)

    @torch.no_grad()
    def hardest(self, x: Tensor, labels: Tensor, share: BatchShare) -> Tensor:
        """Rows of a lifted batch: its pairs, and that half of the rest which is most like an image
        of another class. Of every four rows of the global batch, the first two are a pair."""
        was_training = self.training
        self.eval()  # looking must not move the norms
        z = self.gather(normalize(self(x).float()))  # (share.total, e)
        self.train(was_training)
        labels = self.gather(labels)
        rows = torch.arange(share.total)
        pair, candidates = (send(some, x.device) for some in (rows[rows % 4 < 2], rows[rows % 4 >= 2]))
        # Distances from differences: cosines of an untrained encoder's rows differ by no more than rounding.
        d = torch.cdist(z[pair], z[candidates], compute_mode="donot_use_mm_for_euclid_dist")  # (p, r)
        d = d.masked_fill(labels[pair, None] == labels[candidates], torch.inf)
        best = d.amin(0).topk((len(candidates) + 1) // 2, largest=False).indices
        chosen = torch.cat([pair, candidates[best]])
        if share == BatchShare.whole(len(x)):
            return chosen
        return chosen[(chosen >= share.start) & (chosen < share.stop)] - share.start

    @property
    def batch_kind(self) -> str:
        return str(self.settings.batches)

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        why = N_("128: enough of each class for every anchor")
        return super().defaults(facts) | {"batch_size": fitting(128, why, facts.n_train, cls.card.least_batch)}
