"""NNCLR (Dwibedi et al. 2021, arXiv 2104.14548): the positive is the nearest neighbor of the other view in a queue of
older rows. Order and letters of the paper: z₁, z₂ → NN(z₁, Q), NN(z₂, Q) against p₂, p₁."""

from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import Knobs, knob
from contrastive_core.data.batch_loader import Batch
from contrastive_core.methods._asymmetric import (
    KeyQueue,
    PredictorSettings,
    across_views,
    make_predictor,
    predicted,
    queue_problem,
    queue_size,
)
from contrastive_core.methods._base import NO_KNOBS, DatasetInfo, Default, Method, Rows
from contrastive_core.ops.similarity import normalize
from contrastive_core.pairs.types import Pairs


@dataclass(frozen=True)
class Settings(PredictorSettings):
    queue: int = knob(2048, 1, 98304, N_("|Q|: how many older rows may be a neighbor."), log=True)


class NNCLR(Method):
    Settings = Settings
    loss_knobs_reason = N_("τ 0.2: the paper's 0.1 is for a large queue")

    def build(self) -> None:
        self.predictor = make_predictor(self.settings, self.head.out_dim)
        self.queue = KeyQueue(self.settings.queue, self.head.out_dim)
        self.newest: Tensor | None = None  # first views (b, e) of the current step

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        z = self.encode_views(self.views(batch, 2, generator))  # (b, 2, e)
        return z, predicted(self.predictor, z)

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        z, p = rows
        self.newest = z[:, 0].detach()
        return across_views(self.nearest(z), p)

    @torch.no_grad()
    def nearest(self, z: Tensor) -> Tensor:
        """Return NN(z, Q) (b, v, e), the row of the queue with the highest cosine to each z."""
        return self.queue.rows[(normalize(z.to(self.queue.rows)) @ self.queue.rows.mT).argmax(-1)]

    @torch.no_grad()
    def after_step(self, pairs: Pairs) -> None:
        if self.newest is not None:
            self.queue.enqueue(self.gather(self.newest))
        self.newest = None

    def extra_metrics(self) -> dict[str, float]:
        return {"queue_filled": min(1.0, int(self.queue.enqueued) / len(self.queue))}

    @classmethod
    def incompatibility(cls, facts: DatasetInfo, batch_size: int, knobs: Knobs = NO_KNOBS) -> str | None:
        return queue_problem(knobs.get("queue", 1), facts.n_train)

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        k = queue_size(facts.n_train)
        reason = message("{queue} older rows, filled twice per epoch", queue=k)
        return super().defaults(facts) | {"method_knobs": ({"queue": k}, reason)}
