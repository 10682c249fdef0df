"""SwAV (Caron et al. 2020, arXiv 2006.09882): predict the prototypes of the other view. Order and letters of the
paper's listing: z_t, z_s → scores with C → codes q_t, q_s by Sinkhorn-Knopp → swapped prediction."""

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from contrastive_core import pairs
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.data.batch_loader import Batch
from contrastive_core.methods._base import HeadSettings, Method, Rows
from contrastive_core.ops.similarity import normalize
from contrastive_core.pairs.types import Pairs


@dataclass(frozen=True)
class Settings(HeadSettings):
    head_bn: bool = knob(True, help=N_("BatchNorm in the head's hidden layers."))
    prototypes: int = knob(128, 2, 65536, N_("K: number of prototypes."), log=True)
    epsilon: float = knob(
        0.05, 0.001, 1.0, N_("ε: softness of the codes. A large value makes all prototypes equally likely."), log=True
    )
    iterations: int = knob(3, 1, 100, N_("Number of Sinkhorn-Knopp iterations."))


class SwAV(Method):
    Settings = Settings
    loss_knobs_reason = N_("τ 0.1, as published")

    def build(self) -> None:
        self.prototypes = nn.Linear(self.head.out_dim, self.settings.prototypes, bias=False)

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        z = rows[0]
        c = normalize(self.prototypes.weight)  # (K, e)
        z_t, z_s = normalize(z.detach().to(c)).unbind(1)
        q_t, q_s = (self.codes(rows @ c.detach().mT, batch) for rows in (z_t, z_s))
        q = torch.stack([q_s, q_t], 1).flatten(0, 1)  # (2b, K): of the other view
        slots = torch.arange(len(c), device=c.device)
        made = pairs.from_labels(z.flatten(0, 1), q.argmax(1), c.to(z.dtype), slots)
        return dataclasses.replace(made, targets=q)

    @torch.no_grad()
    def codes(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return codes (b, K) of scores (b, K): assignments of the whole batch of all processes with row sums of 1 and
        about equal column sums, by Sinkhorn-Knopp (Cuturi 2013, arXiv 1306.0895)."""
        scores = self.gather(scores)  # (B, K)
        q = ((scores - scores.max()) / self.settings.epsilon).exp()
        for _ in range(self.settings.iterations):
            q = q / q.sum(0, keepdim=True).clamp_min(torch.finfo(q.dtype).tiny)
            q = q / q.sum(1, keepdim=True).clamp_min(torch.finfo(q.dtype).tiny)
        return q[batch.global_rows.rows]
