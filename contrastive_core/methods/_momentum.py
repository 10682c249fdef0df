"""The shared base of methods with a momentum encoder: a key encoder and head that follow the trained ones slowly
(MoCo's key, BYOL's target). θ_k ← m θ_k + (1 − m) θ_q after each step (He et al. 2020, arXiv 1911.05722, eq. 2).
"""

import copy
import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from contrastive_core import pairs
from contrastive_core.base.device import send
from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import knob
from contrastive_core.data.batch_loader import Batch, BatchShare
from contrastive_core.methods._base import NO_KNOBS, DatasetInfo, Default, HeadSettings, Method, Rows
from contrastive_core.models.encoders import ProjectionHead, split_norms
from contrastive_core.models.memory_bank import KeyQueue, ema_update
from contrastive_core.pairs.types import Pairs


@dataclass(frozen=True)
class MomentumSettings(HeadSettings):
    """Settings of the average."""

    momentum: float = knob(0.99, 0.0, 1.0, N_("m: how slowly the key encoder follows."))
    momentum_warmup: bool = knob(False, help=N_("m rises as (1+t)/(10+t) to its value."))
    momentum_cosine: bool = knob(False, help=N_("m rises to 1 along half a cosine, as BYOL's does."))


class MomentumMethod(Method):
    """A Method with a key encoder and a key head."""

    steps: Tensor

    def build(self) -> None:
        self.key_encoder = copy.deepcopy(self.encoder).requires_grad_(False)
        self.key_head = copy.deepcopy(self.head).requires_grad_(False)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.taken = 0  # `steps` as the host knows it, without waiting for a device
        self.register_load_state_dict_post_hook(_count_steps)

    @torch.no_grad()
    def encode_keys(self, x: Tensor) -> Tensor:
        """Keys (b, v, e) of views (b, v, c, h, w), without gradient."""
        return self.key_head(self.key_encoder(x.flatten(0, 1))).unflatten(0, x.shape[:2])

    @torch.no_grad()
    def after_step(self, pairs: Pairs) -> None:
        ema_update(self.key_encoder, self.encoder, self.m)
        ema_update(self.key_head, self.head, self.m)
        self.steps += 1
        self.taken += 1

    @property
    def m(self) -> float:
        """m of step t; with a cosine 1 − (1 − m)(cos(πt/T) + 1)/2 of T steps (Grill et al. 2020, arXiv 2006.07733)."""
        m, t = self.settings.momentum, self.taken
        if self.settings.momentum_warmup:
            m = min(m, (1 + t) / (10 + t))
        if self.settings.momentum_cosine:
            part = min(1.0, t / max(1, self.total_steps))
            m = 1 - (1 - m) * (math.cos(math.pi * part) + 1) / 2
        return m

    def extra_metrics(self) -> dict[str, float]:
        return {"momentum": self.m, "key_distance": weight_distance(self.encoder, self.key_encoder)}


def _count_steps(method: nn.Module, problems: object) -> None:
    """Take over the number of steps from a loaded state."""
    method.taken = int(method.get_buffer("steps"))  # type: ignore[assignment]


@torch.no_grad()
def weight_distance(one: nn.Module, other: nn.Module) -> float:
    """‖θ − θ'‖ / ‖θ‖ over all parameters."""
    weights, others = (torch.cat([p.float().flatten() for p in module.parameters()]) for module in (one, other))
    return float((weights - others).norm() / weights.norm())


# --- the shared base of methods with a predictor ---------------------------------------------------


@dataclass(frozen=True)
class PredictorSettings(HeadSettings):
    """Settings of the head, with BatchNorm, and of the predictor behind it."""

    head_bn: bool = knob(True, help=N_("BatchNorm in the head's hidden layers."))
    predictor: bool = knob(True, help=N_("A predictor on one side; without it nothing stops a collapse."))
    predictor_hidden: int = knob(128, 2, 8192, N_("Width of the predictor's hidden layer."))


def make_predictor(settings: PredictorSettings, dim: int) -> nn.Module:
    """From z to a prediction of the other view's z: an MLP with one hidden layer, or nothing."""
    if not settings.predictor:
        return nn.Identity()
    return ProjectionHead("nonlinear", dim, dim, settings.predictor_hidden, 2, True)


def predicted(predictor: nn.Module, z: Tensor) -> Tensor:
    """Predictions (b, v, e) from rows (b, v, e), all in one pass."""
    return predictor(z.flatten(0, 1)).unflatten(0, z.shape[:2])  # type: ignore[no-any-return]


def across_views(anchors: Tensor, candidates: Tensor) -> Pairs:
    """Rows (b, v, e) of one side with those (b, v, e) of the other: view i of an image meets views j ≠ i only. Its own
    image's are positives, all other images' negatives."""
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

    momentum_cosine: bool = knob(True, help=N_("m rises to 1 along half a cosine, as BYOL's does."))


class MomentumPredictorMethod(MomentumMethod):
    """A Method that predicts keys of the other view: BYOL, and with negatives MoCo v3."""

    Settings = MomentumPredictorSettings

    def build(self) -> None:
        super().build()
        self.predictor = make_predictor(self.settings, self.head.out_dim)

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        x = self.views(batch, 2, generator)  # (b, 2, c, h, w)
        return predicted(self.predictor, self.encode_views(x)), self.encode_keys(x)

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        return across_views(*rows)


# --- the shared base of MoCo's two versions --------------------------------------------------------
# A query, a key by a slowly moving encoder, a queue of old keys. Order and letters of the paper's pseudocode (He et
# al. 2020, arXiv 1911.05722, algorithm 1): x_q, x_k → q, k → loss on (q·k | q·queue) → SGD → momentum update →
# enqueue.


@dataclass(frozen=True)
class MoCoSettings(MomentumSettings):
    """Settings of both versions."""

    queue: int = knob(2048, 1, 65536, N_("K: how many old keys are negatives."), log=True)
    symmetric: bool = knob(False, help=N_("Both views serve as query and as key."))
    bn_splits: int = knob(1, 1, 64, N_("Split the batch norm into this many parts, as on that many GPUs."))
    shuffle: bool = knob(True, help=N_("Keys are shuffled over these parts."))


class MoCo(MomentumMethod):
    """A Method with a momentum encoder and a queue."""

    temperature_reason: ClassVar[str]  # of τ on the card
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
        """Keys of views, encoded in another order when the batch's norms are split. As in the published code the order
        is of the whole batch: views are gathered, every process encodes its share of the shuffled ones, and the keys
        come back."""
        if not (self.settings.shuffle and self.settings.bn_splits > 1):
            return self.key_head(self.key_encoder(x_k))
        share = share.times(len(x_k) // (share.stop - share.start))  # two rows an image: symmetric
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
    def incompatibility(cls, facts: DatasetInfo, batch_size: int, knobs: Mapping[str, Any] = NO_KNOBS) -> str | None:
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
        reason = message("K {queue}: filled twice in an epoch; m 0.99, as the short CIFAR recipe has", queue=k)
        temperature = cls.card.loss_knobs["temperature"]
        tau = message("τ {temperature}: {why}", temperature=temperature, why=cls.temperature_reason)
        return super().defaults(facts) | {
            "method_knobs": ({"queue": k}, reason),
            "loss_knobs": (cls.card.loss_knobs, tau),
        }


def queue_size(n_train: int, most: int = 4096) -> int:
    """The largest power of two up to `most` that a set fills twice in an epoch."""
    return max(1, min(most, 1 << max(0, (n_train // 2).bit_length() - 1)))


def queue_problem(k: int, n_train: int) -> str | None:
    """Return the reason why a queue of k rows is too long for a set, with the remedy; None if it is not."""
    if k <= n_train:
        return None
    return message(
        "{n} training images cannot fill a queue of {k} in an epoch: every image would meet its own old key; use --set "
        "method.queue={fits}",
        n=n_train,
        k=k,
        fits=queue_size(n_train),
    )
