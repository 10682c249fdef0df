"""Base classes of asymmetric methods: a predictor on one side, and on the other a momentum encoder or a stop-gradient.

A momentum encoder (MoCo's key, BYOL's target) follows the trained one slowly: θ_k ← m θ_k + (1 − m) θ_q after each step
(He et al. 2020, arXiv 1911.05722, eq. 2). A predictor predicts the rows of one view from the other: only predictions
and rows of different views are compared."""

import copy
import dataclasses
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from contrastive_core import pairs
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.data.batch_loader import Batch
from contrastive_core.methods._base import HeadSettings, Method, Rows
from contrastive_core.models.encoders import ProjectionHead
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
