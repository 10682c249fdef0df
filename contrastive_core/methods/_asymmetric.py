"""Base classes of asymmetric methods: a predictor on one side, and on the other a momentum encoder or a stop-gradient.

A momentum encoder (MoCo's key, BYOL's target) follows the trained one slowly: θ_k ← m θ_k + (1 − m) θ_q after each step
(He et al. 2020, arXiv 1911.05722, eq. 2). A predictor predicts the rows of one view from the other: only predictions
and rows of different views are compared. MoCo's two versions have a query, a key, and a queue of older keys, in order
and letters of the paper's pseudocode (algorithm 1): x_q, x_k → q, k → loss on (q·k | q·queue) → SGD → momentum update →
enqueue."""

import copy
import dataclasses
import math
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
from contrastive_core.methods._base import NO_KNOBS, DatasetInfo, Default, HeadSettings, Method, Rows
from contrastive_core.models.encoders import ProjectionHead, split_norms
from contrastive_core.ops.similarity import normalize
from contrastive_core.pairs.types import Pairs


@dataclass(frozen=True)
class MomentumSettings(HeadSettings):
    """Settings of the momentum encoder."""

    momentum: float = knob(
        0.99, 0.0, 1.0, N_("m: momentum of the key encoder; higher values make it follow more slowly.")
    )
    momentum_cosine: bool = knob(False, help=N_("m rises to 1 along half a cosine, as in BYOL."))


class MomentumMethod(Method):
    """A method with a key encoder and a key head."""

    steps: Tensor

    def build(self) -> None:
        self.key_encoder = copy.deepcopy(self.encoder).requires_grad_(False)
        self.key_head = copy.deepcopy(self.head).requires_grad_(False)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.taken = 0  # `steps` on the host, without waiting for a device
        self.register_load_state_dict_post_hook(
            lambda method, _: setattr(method, "taken", int(method.get_buffer("steps")))
        )

    @torch.no_grad()
    def encode_keys(self, x: Tensor) -> Tensor:
        """Return the keys (b, v, e) of views (b, v, c, h, w), without gradient."""
        return self.key_head(self.key_encoder(x.flatten(0, 1))).unflatten(0, x.shape[:2])

    @torch.no_grad()
    def after_step(self, pairs: Pairs) -> None:
        ema_update(self.key_encoder, self.encoder, self.m)
        ema_update(self.key_head, self.head, self.m)
        self.steps += 1
        self.taken += 1

    @property
    def m(self) -> float:
        """The momentum m at step t; with a cosine 1 − (1 − m)(cos(πt/T) + 1)/2 for T steps (BYOL, arXiv 2006.07733)."""
        m = float(self.settings.momentum)
        if self.settings.momentum_cosine:
            part = min(1.0, self.taken / max(1, self.total_steps))
            m = 1 - (1 - m) * (math.cos(math.pi * part) + 1) / 2
        return m

    def extra_metrics(self) -> dict[str, float]:
        """Return m, and the distance ‖θ_q − θ_k‖ / ‖θ_q‖ of the encoders."""
        q, k = (
            torch.cat([p.detach().float().flatten() for p in encoder.parameters()])
            for encoder in (self.encoder, self.key_encoder)
        )
        return {"momentum": self.m, "key_distance": float((q - k).norm() / q.norm())}


@torch.no_grad()
def ema_update(target: nn.Module, source: nn.Module, momentum: float) -> None:
    """Update a momentum encoder: θ_target ← m θ_target + (1 − m) θ_source, parameters only."""
    targets: list[Tensor] = list(target.parameters())
    sources = [s.detach().to(t.dtype) for t, s in zip(targets, source.parameters(), strict=True)]
    torch._foreach_lerp_(targets, sources, 1 - momentum)


@dataclass(frozen=True)
class PredictorSettings(HeadSettings):
    """Settings of the head, with BatchNorm, and of the predictor after it."""

    head_bn: bool = knob(True, help=N_("BatchNorm in the head's hidden layers."))
    predictor: bool = knob(True, help=N_("Use a predictor on one side. Without it nothing prevents a collapse."))
    predictor_hidden: int = knob(128, 2, 8192, N_("Width of the predictor's hidden layer."))


def make_predictor(settings: PredictorSettings, dim: int) -> nn.Module:
    """Return the predictor of the other view's z from z: an MLP with one hidden layer, or the identity."""
    if not settings.predictor:
        return nn.Identity()
    return ProjectionHead("nonlinear", dim, dim, settings.predictor_hidden, 2, True)


def predicted(predictor: nn.Module, z: Tensor) -> Tensor:
    """Return predictions (b, v, e) from rows (b, v, e), computed in one pass."""
    return predictor(z.flatten(0, 1)).unflatten(0, z.shape[:2])  # type: ignore[no-any-return]


def across_views(anchors: Tensor, candidates: Tensor) -> Pairs:
    """Compare rows (b, v, e) of one side with rows (b, v, e) of the other: view i only with views j ≠ i. Rows of the
    same image are positives, rows of other images negatives."""
    b, v, _ = anchors.shape
    a, c = anchors.flatten(0, 1), candidates.flatten(0, 1).to(anchors.dtype)  # image-major: row = v · image + view
    rows = torch.arange(b * v, device=a.device)
    images, views = rows // v, rows % v
    made = pairs.from_labels(a, images, c, images)
    return dataclasses.replace(
        made,
        anchor_rows=rows + b * v,
        candidate_rows=rows,
        anchor_views=views,
        candidate_views=views,
        across=True,
        group_size=v - 1,
    )


@dataclass(frozen=True)
class MomentumPredictorSettings(MomentumSettings, PredictorSettings):
    """Settings of a predictor on one side and a momentum encoder on the other."""

    momentum_cosine: bool = knob(True, help=N_("m rises to 1 along half a cosine, as in BYOL."))


class MomentumPredictorMethod(MomentumMethod):
    """A method that predicts keys of the other view: BYOL, and with negatives MoCo v3."""

    Settings = MomentumPredictorSettings

    def build(self) -> None:
        super().build()
        self.predictor = make_predictor(self.settings, self.head.out_dim)

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        x = self.views(batch, 2, generator)  # (b, 2, c, h, w)
        return predicted(self.predictor, self.encode_views(x)), self.encode_keys(x)

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        return across_views(*rows)


# --- MoCo ---


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
