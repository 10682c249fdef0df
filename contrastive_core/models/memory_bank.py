"""The memory of some methods: a queue of keys (MoCo), a bank of features (Inst Disc), an average. State lives in
persistent buffers, so that it is saved with the weights, and changes only in the named methods, without gradient."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from contrastive_core.base.device import send
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_
from contrastive_core.data.batch_loader import BatchShare
from contrastive_core.ops.similarity import normalize


class KeyQueue(nn.Module):
    """The last `size` keys (K, d), unit rows, oldest overwritten first; random rows at first."""

    rows: Tensor
    pointer: Tensor
    enqueued: Tensor

    def __init__(self, size: int, dim: int) -> None:
        super().__init__()
        if size < 1:
            raise BadSetting("a queue holds at least one key; got {size}", size=size)
        self.register_buffer("rows", normalize(torch.randn(size, dim)))
        self.register_buffer("pointer", torch.zeros((), dtype=torch.long))
        self.register_buffer("enqueued", torch.zeros((), dtype=torch.long))

    def __len__(self) -> int:
        return self.rows.shape[0]

    @torch.no_grad()
    def enqueue(self, keys: Float[Tensor, "n d"]) -> None:
        """Put `keys` in place of the oldest; of more than K, the last K stay."""
        n, k = len(keys), len(self)
        newest = normalize(keys[-k:].detach().to(self.rows))
        start = self.pointer + max(0, n - k)
        at = (start + torch.arange(len(newest), device=self.rows.device)) % k
        self.rows[at] = newest
        self.pointer.copy_((self.pointer + n) % k)
        self.enqueued.add_(n)


class MemoryBank(nn.Module):
    """One unit row per training image (N, d), random at first: v ← norm(μ v + (1 − μ) f). `log_z` is the log of NCE's
    normalizer: of the first batch, or its running mean (EMA 0.99)."""

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
        self, index: Int[Tensor, " n"], k: int, generator: torch.Generator, share: BatchShare | None = None
    ) -> Int[Tensor, "n k"]:
        """K slots per anchor, uniform over the others: its own is never drawn, repeats may be. `share`: which rows of
        the global batch the anchors are; the slots are drawn for all."""
        if len(self) < 2:
            raise ValueError(N_("noise needs a bank of at least two images"))
        share = share or BatchShare.whole(len(index))
        slots = torch.randint(len(self) - 1, (share.total, k), generator=generator, device=generator.device)
        slots = send(slots[share.rows], index.device)
        return slots + (slots >= index[:, None])

    @torch.no_grad()
    def update(self, index: Int[Tensor, " n"], features: Float[Tensor, "n d"]) -> None:
        """Move the slots of a batch towards its features. A repeated index counts once, last."""
        f = normalize(features.detach().to(self.rows))
        self.rows[index] = normalize(self.momentum * self.rows[index] + (1 - self.momentum) * f)

    def next_log_z(self, estimate: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Return `log_z` after a batch's estimate: the first stays, or Z's average is updated."""
        log_z = self.log_z.to(estimate.dtype)
        following = log_z
        if self.ema is not None:
            both = torch.stack([log_z + math.log(self.ema), estimate + math.log1p(-self.ema)])
            following = both.to(self.log_z.dtype).logsumexp(0).to(estimate.dtype)
        return torch.where(log_z.isnan(), estimate, following)

    @torch.no_grad()
    def keep_log_z(self, log_z: Float[Tensor, ""]) -> None:
        """Store what `next_log_z` gave, once the step is taken."""
        self.log_z.copy_(log_z)


@torch.no_grad()
def ema_update(target: nn.Module, source: nn.Module, momentum: float) -> None:
    """θ_target ← m θ_target + (1 − m) θ_source, parameters only (MoCo, eq. 2)."""
    targets: list[Tensor] = list(target.parameters())
    sources = [s.detach().to(t.dtype) for t, s in zip(targets, source.parameters(), strict=True)]
    torch._foreach_lerp_(targets, sources, 1 - momentum)
