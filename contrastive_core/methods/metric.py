"""Metric learning: class-balanced batches and any supervised loss. One view per image. Triplet
(1503.03832), lifted structure (1511.06452), N-pair (Sohn 2016), pairs (Hadsell 2006), soft nearest neighbor
(1902.01889) and SupCon all use these pairs."""

from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core import pairs
from contrastive_core.base.device import send
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import fitting, knob
from contrastive_core.data.batch_loader import Batch, BatchShare
from contrastive_core.methods._base import DatasetInfo, Default, HeadSettings, Method, Rows
from contrastive_core.models.encoders import HEADS
from contrastive_core.ops.similarity import normalize
from contrastive_core.pairs.types import Pairs


@dataclass(frozen=True)
class Settings(HeadSettings):
    head: str = knob("linear", help=N_("Projection from h to z."), choices=HEADS)
    batches: str = knob(
        "class_balanced",
        help=N_(
            "Batch composition: many images of each class, one pair of each class, or random pairs with "
            "their hardest negatives."
        ),
        choices=("class_balanced", "n_pair", "lifted"),
    )


class Metric(Method):
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
        """Choose the rows of a lifted batch: its pairs, and the half of the other rows most similar to a paired image
        of another class. In every four rows of the global batch, the first two are a pair."""
        was_training = self.training
        self.eval()  # this pass must not update BatchNorm
        z = self.gather(normalize(self(x).float()))  # (share.total, e)
        self.train(was_training)
        labels = self.gather(labels)
        rows = torch.arange(share.total)
        pair, candidates = (send(some, x.device) for some in (rows[rows % 4 < 2], rows[rows % 4 >= 2]))
        # Exact distances: cosines of an untrained encoder's rows differ only by rounding.
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
