"""State of methods beside the encoder: the queue of keys (MoCo), the memory bank (Inst Disc), and the update of a
momentum encoder. It lives in persistent buffers, so it is saved with the weights. Only the named methods change it,
without gradient."""

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
    """Queue of the last `size` keys (K, d) as unit rows, random at first. New keys overwrite the oldest ones."""

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
        """Overwrite the oldest keys with `keys` (n, d). If n > K, only the last K are stored."""
        n, k = len(keys), len(self)
        newest = normalize(keys[-k:].detach().to(self.rows))
        start = self.pointer + max(0, n - k)
        at = (start + torch.arange(len(newest), device=self.rows.device)) % k
        self.rows[at] = newest
        self.pointer.copy_((self.pointer + n) % k)
        self.enqueued.add_(n)


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
        self, index: Int[Tensor, " n"], k: int, generator: torch.Generator, share: BatchShare | None = None
    ) -> Int[Tensor, "n k"]:
        """Draw k slots per anchor uniformly from the slots of other images, with replacement. `share`: the anchors'
        rows in the global batch; the slots are drawn for the whole batch. Raises ValueError for a bank of one image."""
        if len(self) < 2:
            raise ValueError(N_("noise needs a bank of at least two images"))
        share = share or BatchShare.whole(len(index))
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

    @torch.no_grad()
    def keep_log_z(self, log_z: Float[Tensor, ""]) -> None:
        """Store the result of `next_log_z` after the optimizer step."""
        self.log_z.copy_(log_z)


@torch.no_grad()
def ema_update(target: nn.Module, source: nn.Module, momentum: float) -> None:
    """Update a momentum encoder: θ_target ← m θ_target + (1 − m) θ_source, parameters only (MoCo, eq. 2)."""
    targets: list[Tensor] = list(target.parameters())
    sources = [s.detach().to(t.dtype) for t, s in zip(targets, source.parameters(), strict=True)]
    torch._foreach_lerp_(targets, sources, 1 - momentum)
