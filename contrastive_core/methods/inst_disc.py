"""Instance discrimination (Wu et al. 2018, arXiv 1805.01978): each image is a class of its own. One view per image is
compared with a memory bank: with K noise slots by NCE, or (`noise=0`) with the whole bank by a softmax. The bank, not
the encoder, has the momentum."""

import dataclasses
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from contrastive_core import pairs
from contrastive_core.base.device import send
from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import Knobs, knob
from contrastive_core.data.batch_loader import Batch, BatchShare
from contrastive_core.losses.nce import NCE
from contrastive_core.methods._base import NO_KNOBS, DatasetInfo, Default, HeadSettings, Method, Rows
from contrastive_core.ops.similarity import full_precision, normalize
from contrastive_core.pairs.types import Pairs

LOG_Z_ROWS = 1024  # anchors of a batch from whose scores Z is estimated
WHOLE_BANK = 10_000  # images up to which the softmax runs over the whole bank by default


@dataclass(frozen=True)
class Settings(HeadSettings):
    head: str = knob("linear", help=N_("Projection from h to z."), choices=("linear", "nonlinear"))
    dim: int = knob(128, 2, 4096, N_("Width of z, and of the bank."))
    noise: int = knob(4096, 0, 65536, N_("K noise slots per anchor; 0: the whole bank."))
    bank_momentum: float = knob(0.5, 0.0, 1.0, N_("μ: v ← norm(μ v + (1 − μ) f)."))
    log_z: str = knob(
        "ema",
        help=N_("Normalizer of NCE: fixed after the first batch, or updated continuously."),
        choices=("ema", "first_batch"),
    )


class MemoryBank(nn.Module):
    """One unit row per training image (N, d), random at first: v ← norm(μ v + (1 − μ) f). `log_z` is the log of NCE's
    normalizer, estimated from the first batch or as a running mean (EMA 0.99)."""

    rows: Tensor
    log_z: Tensor

    def __init__(self, size: int, dim: int, momentum: float = 0.5, ema: float | None = None) -> None:
        super().__init__()
        self.momentum, self.ema = momentum, ema
        self.register_buffer("rows", normalize(torch.randn(size, dim)))
        self.register_buffer("log_z", torch.tensor(torch.nan))

    def __len__(self) -> int:
        return self.rows.shape[0]

    def noise(
        self, index: Int[Tensor, " n"], k: int, generator: torch.Generator, share: BatchShare
    ) -> Int[Tensor, "n k"]:
        """Draw k slots per anchor uniformly from the slots of other images, with replacement. `share`: the anchors'
        rows in the global batch; the slots are drawn for the whole batch."""
        slots = torch.randint(len(self) - 1, (share.total, k), generator=generator, device=generator.device)
        slots = send(slots[share.rows], index.device)
        return slots + (slots >= index[:, None])

    @torch.no_grad()
    def update(self, index: Int[Tensor, " n"], features: Float[Tensor, "n d"]) -> None:
        """Move the slots of a batch towards its features. If an index repeats, its last row is used."""
        f = normalize(features.detach().to(self.rows))
        self.rows[index] = normalize(self.momentum * self.rows[index] + (1 - self.momentum) * f)

    def next_log_z(self, estimate: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Return `log_z` after a batch's estimate: the first estimate, or the updated running mean."""
        log_z = self.log_z.to(estimate.dtype)
        following = log_z
        if self.ema is not None:
            both = torch.stack([log_z + math.log(self.ema), estimate + math.log1p(-self.ema)])
            following = both.to(self.log_z.dtype).logsumexp(0).to(estimate.dtype)
        return torch.where(log_z.isnan(), estimate, following)


class InstDisc(Method):
    Settings = Settings

    def build(self) -> None:
        s = self.settings
        ema = 0.99 if s.log_z == "ema" else None
        self.bank = MemoryBank(self.n_train, self.head.out_dim, s.bank_momentum, ema)

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        x = self.views(batch, 1, generator)[:, 0]  # (b, c, h, w)
        return (self(x),)  # f (b, e)

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        f = rows[0]
        k = self.settings.noise
        share = batch.global_rows
        noise = self.bank.noise(batch.index, k, generator, share) if k else None  # (b, k)
        compared = pairs.from_bank(f, batch.index, self.bank.rows.clone(), noise)
        return dataclasses.replace(compared, log_z=self.log_z(compared, share))

    def log_z(self, compared: Pairs, share: BatchShare) -> Tensor | None:
        """Return log Z updated with this batch, if the loss is NCE and does not fix it. Z is a mean over the first
        LOG_Z_ROWS anchors of the global batch: the mean of each process is weighted by its number of such anchors."""
        if not isinstance(self.loss, NCE) or self.loss.log_z is not None:
            return None
        n = max(0, min(share.stop, LOG_Z_ROWS) - share.start)
        with full_precision(compared.anchors.device):
            log_z = self.loss.estimate_log_z(self.loss.unit_rows(compared.take_anchors(slice(n))))
        each = self.gather(torch.stack([log_z, torch.full_like(log_z, n)])[None])  # (processes, 2)
        log_mean = (each[:, 0] + (each[:, 1] / each[:, 1].sum()).log()).logsumexp(0)
        return self.bank.next_log_z(log_mean)

    @torch.no_grad()
    def after_step(self, pairs: Pairs) -> None:
        self.bank.update(self.gather(pairs.anchor_groups), self.gather(pairs.anchors.detach()))
        if isinstance(pairs.log_z, Tensor):
            self.bank.log_z.copy_(pairs.log_z)

    def extra_metrics(self) -> dict[str, float]:
        return {} if self.bank.log_z.isnan() else {"log_z": float(self.bank.log_z)}

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        defaults = super().defaults(facts)
        defaults["lr"] = (1e-3, N_("a slot is one epoch old: smaller steps keep the bank close to the encoder"))
        defaults["loss_knobs"] = (cls.card.loss_knobs, N_("τ 0.1, as the published CIFAR-10 code"))
        if facts.n_train > WHOLE_BANK:
            return defaults | {"method_knobs": ({"noise": 4096}, N_("K 4,096, as published"))}
        reason = N_("the whole bank fits in memory: use the exact softmax that NCE approximates")
        exact = ({"temperature": 0.07}, N_("τ 0.07, as published"))
        whole = {"loss": ("instance_softmax", reason), "method_knobs": ({"noise": 0}, reason)}
        return defaults | whole | {"loss_knobs": exact}

    @classmethod
    def incompatibility(cls, facts: DatasetInfo, batch_size: int, knobs: Knobs = NO_KNOBS) -> str | None:
        n, k = facts.n_train, knobs.get("noise", 0)
        if n < 3:
            return message("a memory bank of {n} images has no noise to draw; use at least 3 images", n=n)
        if k > n - 1:
            values = {"n": n, "slots": n - 1, "k": k}
            return message(
                "a bank of {n} images has {slots} noise slots, fewer than {k}; use --set method.noise=0 for all of "
                "them, or a smaller number",
                **values,
            )
        return None
