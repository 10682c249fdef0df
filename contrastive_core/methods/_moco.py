"""Base class of MoCo's two versions: a query, a key from a momentum encoder, and a queue of older keys. Order and
letters of the paper's pseudocode (He et al. 2020, arXiv 1911.05722, algorithm 1): x_q, x_k → q, k → loss on (q·k |
q·queue) → SGD → momentum update → enqueue."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from contrastive_core import pairs
from contrastive_core.base.device import send
from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import Knobs, knob
from contrastive_core.data.batch_loader import Batch, BatchShare
from contrastive_core.methods._asymmetric import MomentumMethod, MomentumSettings
from contrastive_core.methods._base import NO_KNOBS, DatasetInfo, Default, Rows
from contrastive_core.models.encoders import split_norms
from contrastive_core.ops.similarity import normalize
from contrastive_core.pairs.types import Pairs


class KeyQueue(nn.Module):
    """Queue of the last `size` keys (K, d) as unit rows, random at first. New keys overwrite the oldest ones."""

    rows: Tensor
    pointer: Tensor
    enqueued: Tensor

    def __init__(self, size: int, dim: int) -> None:
        super().__init__()
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


@dataclass(frozen=True)
class MoCoSettings(MomentumSettings):
    """Settings of both versions of MoCo."""

    queue: int = knob(2048, 1, 65536, N_("K: number of old keys used as negatives."), log=True)
    symmetric: bool = knob(False, help=N_("Both views serve as query and as key."))
    bn_splits: int = knob(1, 1, 64, N_("Split the batch norm into this many parts, as on that many GPUs."))
    shuffle: bool = knob(True, help=N_("Shuffle keys across these parts."))


class MoCo(MomentumMethod):
    """A method with a momentum encoder and a queue."""

    temperature_reason: ClassVar[str]  # reason for the card's τ
    negatives_in_queue = True

    def build(self) -> None:
        s = self.settings
        split_norms(self.encoder, s.bn_splits)
        super().build()
        self.queue = KeyQueue(s.queue, self.head.out_dim)

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        x_q, x_k = self.views(batch, 2, generator).unbind(1)  # (b, c, h, w) each
        if self.settings.symmetric:  # image-major: row = 2 · image + view
            x_q, x_k = (torch.stack(x, 1).flatten(0, 1) for x in ((x_q, x_k), (x_k, x_q)))
        return self(x_q), self.keys(x_k, batch.global_rows, generator)  # q (n, e), and k (n, e) without gradient

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        q, k = rows
        return pairs.from_queue(q, k, self.queue.rows.clone())

    @torch.no_grad()
    def keys(self, x_k: Tensor, share: BatchShare, generator: torch.Generator) -> Tensor:
        """Return the keys of views, encoded in shuffled order if the batch norms are split. As in the published code,
        the whole batch is shuffled: views are gathered, every process encodes its share of the shuffled ones, and the
        keys are restored to their order."""
        if not (self.settings.shuffle and self.settings.bn_splits > 1):
            return self.key_head(self.key_encoder(x_k))
        share = share.times(len(x_k) // (share.stop - share.start))  # two rows per image if symmetric
        order = torch.randperm(share.total, generator=generator, device=generator.device)
        order = send(order, x_k.device)
        shuffled = self.gather(x_k)[order[share.rows]]
        k = self.gather(self.key_head(self.key_encoder(shuffled)))  # (share.total, e)
        return k[order.argsort()[share.rows]]

    @torch.no_grad()
    def after_step(self, pairs: Pairs) -> None:
        super().after_step(pairs)
        keys = pairs.candidates[: len(pairs)].detach()  # (n, e), before the queue
        if self.settings.symmetric:
            keys = keys[::2]  # one key per image
        self.queue.enqueue(self.gather(keys))

    def extra_metrics(self) -> dict[str, float]:
        filled = min(1.0, int(self.queue.enqueued) / len(self.queue))
        age = len(self.queue) * self.taken / max(1, int(self.queue.enqueued))  # steps
        return {"queue_filled": filled, "queue_age": min(age, self.taken), **super().extra_metrics()}

    @classmethod
    def incompatibility(cls, facts: DatasetInfo, batch_size: int, knobs: Knobs = NO_KNOBS) -> str | None:
        k, splits = knobs.get("queue", 1), knobs.get("bn_splits", 1)
        if reason := queue_problem(k, facts.n_train):
            return reason
        if batch_size < 2 * splits:
            values = {"batch_size": batch_size, "splits": splits, "most": max(1, batch_size // 2)}
            return message(
                "a batch of {batch_size} cannot be split into {splits} parts of two images; use --set "
                "method.bn_splits={most} or a larger batch",
                **values,
            )
        return None

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        k = queue_size(facts.n_train)
        reason = message("K {queue} is filled twice per epoch; m 0.99, as in the short CIFAR recipe", queue=k)
        temperature = cls.card.loss_knobs["temperature"]
        tau = message("τ {temperature}: {why}", temperature=temperature, why=cls.temperature_reason)
        return super().defaults(facts) | {
            "method_knobs": ({"queue": k}, reason),
            "loss_knobs": (cls.card.loss_knobs, tau),
        }


def queue_size(n_train: int, most: int = 4096) -> int:
    """Return the largest power of two up to `most` that the training set fills twice in an epoch."""
    return max(1, min(most, 1 << max(0, (n_train // 2).bit_length() - 1)))


def queue_problem(k: int, n_train: int) -> str | None:
    """Return why a queue of k rows is too long for a training set, and the remedy; None if it is not."""
    if k <= n_train:
        return None
    return message(
        "{n} training images cannot fill a queue of {k} in an epoch: every image would meet its own old key; use --set "
        "method.queue={fits}",
        n=n_train,
        k=k,
        fits=queue_size(n_train),
    )
