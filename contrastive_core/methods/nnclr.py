"""NNCLR (Dwibedi et al. 2021, arXiv 2104.14548): the positive is not the other view itself but what lies nearest to it
in a queue of older rows. Order and letters of the paper: z₁, z₂ → NN(z₁, Q), NN(z₂, Q) against p₂, p₁."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from contrastive_core.data.batch_loader import Batch
from contrastive_core.messages import N_, message
from contrastive_core.methods._base import NO_KNOBS, DatasetInfo, Default, Method, Rows
from contrastive_core.methods._moco import queue_problem, queue_size
from contrastive_core.methods._predictor import PredictorSettings, across_views, make_predictor, predicted
from contrastive_core.methods._published import BYOL_VIEWS, LARS, LIGHTLY
from contrastive_core.models.memory_bank import KeyQueue
from contrastive_core.ops.similarity import normalize
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.cards import MethodCard, Published
from contrastive_core.registry import knob


@dataclass(frozen=True)
class Settings(PredictorSettings):
    queue: int = knob(2048, 1, 98304, N_("|Q|: how many older rows may be a neighbor."), log=True)


class NNCLR(Method):
    card = MethodCard(
        title="NNCLR",
        year=2021,
        paper="https://arxiv.org/abs/2104.14548",
        idea=N_(
            "Take the nearest neighbor of a view among older rows as its positive: another image that looks alike. So "
            "the positives vary more than augmentations can make them."
        ),
        compared=N_("a view's nearest older row with the prediction of its other view, against the batch"),
        flow=(
            ("image", N_("view 1"), "encoder*", "head*", "z₁*", "NN(z₁)"),
            ("image", N_("view 2"), "encoder*", "head*", N_("predictor*"), "p₂*"),
            (N_("queue of older rows"),),
        ),
        measured_by_paper=N_(
            "ImageNet linear, ResNet-50, 1,000 epochs: 75.6 %; with crops alone 68.2 % (quoted; not checked against "
            "the paper itself)."
        ),
        differences=N_("The queue holds first views only, as in published codes. LARS is not used here."),
        paper_recipe=N_("batch 4,096, τ 0.1, queue 98,304, d 256, hidden 2,048, predictor 4,096"),
        default_loss="info_nce",
        loss_knobs={"temperature": 0.2},
        updates=(("z₁", N_("queue of older rows"), "enqueue"),),
        uses=("negatives", "memory of older rows", "predictor"),
        builds_on=(("simclr", N_("the batch as negatives")), ("moco_v1", N_("queue")), ("byol", N_("predictor"))),
        published={
            "cifar": Published(
                **LIGHTLY,
                method_knobs={"hidden": 2048, "dim": 256, "predictor_hidden": 4096, "queue": 8192},
                loss_knobs={"temperature": 0.5},
            ),
            "imagenet": Published(  # VISSL's nnclr_8node_resnet.yaml (github.com/clane9/vissl)
                **LARS,
                source=N_("NNCLR's paper on ImageNet with ResNet-50"),
                lr=0.3,
                weight_decay=1e-6,
                epochs=1000,
                method_knobs={"depth": 3, "hidden": 2048, "dim": 256, "predictor_hidden": 4096, "queue": 98304},
                loss_knobs={"temperature": 0.1},
                views=BYOL_VIEWS,
            ),
        },
    )
    Settings = Settings
    loss_knobs_reason = N_("τ 0.2: the paper's 0.1 waits for a large queue")

    def build(self) -> None:
        self.predictor = make_predictor(self.settings, self.head.out_dim)
        self.queue = KeyQueue(self.settings.queue, self.head.out_dim)
        self.newest: Tensor | None = None  # first views (b, e) of the step that is being taken

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        z = self.encode_views(self.views(batch, 2, generator))  # (b, 2, e)
        return z, predicted(self.predictor, z)

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        z, p = rows
        self.newest = z[:, 0].detach()
        return across_views(self.nearest(z), p)

    @torch.no_grad()
    def nearest(self, z: Tensor) -> Tensor:
        """NN(z, Q) (b, v, e): the row of the queue with the highest cosine to each z."""
        return self.queue.rows[(normalize(z.to(self.queue.rows)) @ self.queue.rows.mT).argmax(-1)]

    @torch.no_grad()
    def after_step(self, pairs: Pairs) -> None:
        if self.newest is not None:
            self.queue.enqueue(self.gather(self.newest))
        self.newest = None

    def extra_metrics(self) -> dict[str, float]:
        return {"queue_filled": min(1.0, int(self.queue.enqueued) / len(self.queue))}

    @classmethod
    def incompatibility(cls, facts: DatasetInfo, batch_size: int, knobs: Mapping[str, Any] = NO_KNOBS) -> str | None:
        return queue_problem(knobs.get("queue", 1), facts.n_train)

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        k = queue_size(facts.n_train)
        reason = message("{queue} older rows: filled twice in an epoch", queue=k)
        return super().defaults(facts) | {"method_knobs": ({"queue": k}, reason)}
