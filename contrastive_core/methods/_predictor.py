"""Base class of methods with a predictor, which predicts the rows of one view from the other. Only predictions and
rows of different views are compared."""

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from contrastive_core import pairs
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.data.batch_loader import Batch
from contrastive_core.methods._base import HeadSettings, Rows
from contrastive_core.methods._momentum import MomentumMethod, MomentumSettings
from contrastive_core.models.encoders import ProjectionHead
from contrastive_core.pairs.types import Pairs


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
