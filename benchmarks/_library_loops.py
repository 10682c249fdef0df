"""Loops of lightly, pytorch-metric-learning, sentence-transformers and open_clip with planted faults, and without. The
criterion is the library's, and declares its loss: `watch(name, loss=criterion)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from lightly.loss import NTXentLoss
from pytorch_metric_learning import losses as metric
from pytorch_metric_learning.distances import DotProductSimilarity
from pytorch_metric_learning.reducers import SumReducer
from sentence_transformers.losses import MultipleNegativesRankingLoss, MultipleNegativesSymmetricRankingLoss
from sentence_transformers.util import dot_score
from torch import Tensor, nn
from torch.nn.functional import normalize

from benchmarks._plain_loops import ROWS, TAU, Kind, Loop, Step
from contrastive_core.recording.watch import Watch

try:
    from open_clip.loss import ClipLoss, SigLipLoss
except ImportError:
    ClipLoss = SigLipLoss = None  # it is no part of the environment: uv run --with open-clip-torch
BATCHES = 4  # that are accumulated
Calls = Callable[[Any, Tensor, Tensor], Tensor]


def views(
    criterion: nn.Module,
    change: Calls | None = None,
    *,
    divide: int = 0,
    repeated: int = 0,
    rate: float = 0,
    **how: Any,
) -> Callable[[Kind], Step]:
    """Rows of two encoders or views, which the criterion takes; `change` calls it otherwise, and its rows are recorded
    beside it. `divide`: batches are accumulated, and each loss is divided by this number."""

    def make(kind: Kind = None) -> Step:
        def step(loop: Loop, w: Watch) -> None:
            if rate:
                loop.optimizer.param_groups[0]["lr"] = rate
            loop.optimizer.zero_grad(set_to_none=True)
            for _ in range(BATCHES if divide else 1):
                index, x = loop.batch(repeated)
                with loop.autocast(kind):
                    a, b = loop.model(x).chunk(2)
                    if how.get("normalized"):
                        a, b = normalize(a, dim=1), normalize(b, dim=1)
                    if change is None:
                        loss = w.wrap(criterion)(a, b, *how.get("more", ()), watch_ids=index)
                    else:
                        loss = change(criterion, a, b)
                        w.step(a, b, ids=index, caller_loss=loss, temperature=how.get("tau"))
                (loss / (divide or 1) * loop.scale).backward()
            loop.update()

        return step

    return make


def labeled(criterion: nn.Module, change: Calls | None = None, rate: float = 0) -> Callable[[Kind], Step]:
    """Rows with labels, in two views that no criterion is told of."""

    def make(kind: Kind = None) -> Step:
        def step(loop: Loop, w: Watch) -> None:
            if rate:
                loop.optimizer.param_groups[0]["lr"] = rate
            index, x = loop.batch()
            labels = loop.classes[index].repeat(2)
            with loop.autocast(kind):
                z = loop.model(x)
                if change is None:
                    loss = w.wrap(criterion)(z, labels)
                else:
                    loss = change(criterion, z, labels)
                    w.step(z, labels=labels, ids=index.repeat(2), caller_loss=loss)
            loop.learn(loss)

        return step

    return make


def three_views(criterion: nn.Module) -> Callable[[Kind], Step]:
    """A third view that the loss does not see."""

    def make(kind: Kind = None) -> Step:
        def step(loop: Loop, w: Watch) -> None:
            index, x = loop.batch()
            z = torch.stack([*loop.model(x).chunk(2), loop.model(x[:ROWS] + 0.3)], 1)
            loss = criterion(z[:, 0], z[:, 1])
            w.step(z, ids=index, caller_loss=loss)
            loop.learn(loss)

        return step

    return make


class Sentences(nn.Module):
    """The model of a loop, as sentence-transformers calls one."""

    def __init__(self) -> None:
        super().__init__()
        self.loop: list[Loop] = []

    def forward(self, features: dict[str, Tensor], **_: Any) -> dict[str, Tensor]:
        return {**features, "sentence_embedding": self.loop[0].model(features["x"])}


class FirstColumns(MultipleNegativesRankingLoss):
    """The negatives of a triplet are encoded and not used."""

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        return super().compute_loss_from_embeddings(embeddings[:2], labels)


def sentences(
    kind_of: type[nn.Module] = MultipleNegativesRankingLoss,
    columns: int = 2,
    repeated: int = 0,
    divide: float = 0,
    rate: float = 0,
    **settings: Any,
) -> Callable[[Kind], Step]:
    def make(kind: Kind = None) -> Step:
        criterion = kind_of(Sentences(), **{"scale": 1 / TAU, **settings})

        def step(loop: Loop, w: Watch) -> None:
            criterion.model.loop = [loop]
            if rate:
                loop.optimizer.param_groups[0]["lr"] = rate
            loop.optimizer.zero_grad(set_to_none=True)
            for _ in range(BATCHES if divide else 1):
                index, x = loop.batch(repeated)
                hard = loop.points[torch.randperm(512)[:ROWS]]
                features = [{"x": z} for z in (*x.chunk(2), hard)][:columns]
                with loop.autocast(kind):
                    loss = w.wrap(criterion)(features, None, watch_ids=index)
                (loss / (divide or 1) * loop.scale).backward()
            loop.update()

        return step

    return make


def _declared(criterion: nn.Module, **more: Any) -> dict[str, Any]:
    return {"loss": criterion, **more}


def _ranking(kind: type[nn.Module] = MultipleNegativesRankingLoss, **more: Any) -> dict[str, Any]:
    return _declared(kind(Sentences(), scale=1 / TAU), **more)


def _views_of(loss: nn.Module, **how: Any) -> nn.Module:
    return metric.SelfSupervisedLoss(loss, **how)


NT_XENT, SUP_CON, PAIRS = NTXentLoss(TAU), metric.SupConLoss(TAU), _views_of(metric.NTXentLoss(TAU))
RAW = DotProductSimilarity(normalize_embeddings=False)
MANY = {"accumulate": BATCHES}
DETACHED: Calls = lambda criterion, a, b: criterion(a, b.detach())  # noqa: E731
SHIFTED: Calls = lambda criterion, a, b: criterion(a, b.roll(1, 0))  # noqa: E731
OTHER_ORDER: Calls = lambda criterion, a, b: criterion(*torch.stack([a, b], 1).flatten(0, 1).chunk(2))  # noqa: E731
Planted = tuple[str, Callable[[Kind], Step], dict[str, Any]]  # the name, the loop, what it declares


def planted() -> Iterator[tuple[str, Planted]]:
    """By title."""
    declared = _declared(NT_XENT)
    yield "lightly, τ twice", ("tau_twice", views(NTXentLoss(TAU * TAU)), declared)
    yield "lightly, τ as a scale", ("tau_as_scale", views(NTXentLoss(1 / TAU)), declared)
    yield "lightly, τ left at its default", ("other_tau", views(NTXentLoss()), declared)
    yield "lightly, one side detached", ("detached", views(NT_XENT, DETACHED), declared)
    yield "lightly, targets shifted", ("target_shifted", views(NT_XENT, SHIFTED), declared)
    yield "lightly, views in another order", ("view_order", views(NT_XENT, OTHER_ORDER), declared)
    yield "lightly, a view left out", ("view_unused", three_views(NT_XENT), declared)
    yield "lightly, duplicates in the batch", ("duplicates", views(NT_XENT, repeated=5), declared)
    yield "lightly, accumulated, not divided", ("gradient_scaled", views(NT_XENT, divide=1), {**declared, **MANY})
    declared = _declared(SUP_CON)
    yield "metric learning, τ as a scale", ("tau_as_scale", labeled(metric.SupConLoss(1 / TAU)), declared)
    raw = metric.SupConLoss(TAU, distance=RAW)
    yield "metric learning, rows not normalized", ("not_normalized", labeled(raw, rate=1e-3), declared)
    summed = metric.SupConLoss(TAU, reducer=SumReducer())
    yield "metric learning, sum in place of mean", ("wrong_count", labeled(summed, rate=5e-4), declared)
    own = labeled(SUP_CON, lambda criterion, z, y: criterion(z, torch.arange(len(z)) % ROWS))
    yield "metric learning, labels not used", ("paired_by_views", own, declared)
    other = labeled(SUP_CON, lambda criterion, z, y: criterion(z, y.roll(1)))
    yield "metric learning, labels of other rows", ("target_shifted", other, declared)
    pairs = labeled(metric.NTXentLoss(TAU))
    by_anchor = {"loss": "nt_xent", "denominator": "own_positive", "temperature": TAU, "positives": "labels"}
    yield "metric learning, mean over pairs", ("mean_over_pairs", pairs, by_anchor)
    one = _views_of(metric.NTXentLoss(TAU), symmetric=False)
    declared = _declared(PAIRS)
    yield "metric learning, one direction", ("one_direction", views(one), declared)
    yield "metric learning, one side detached", ("detached", views(PAIRS, DETACHED), declared)
    yield "metric learning, duplicates in the batch", ("duplicates", views(PAIRS, repeated=5), declared)
    declared = _ranking()
    yield "sentence-transformers, τ as a scale", ("tau_as_scale", sentences(scale=TAU), declared)
    yield "sentence-transformers, τ not applied", ("tau_unused", sentences(scale=1.0), declared)
    yield "sentence-transformers, scale left at its default", ("other_tau", sentences(scale=20.0), declared)
    raw = sentences(similarity_fct=dot_score, rate=1e-3)
    yield "sentence-transformers, rows not normalized", ("not_normalized", raw, declared)
    yield "sentence-transformers, negatives unused", ("negatives_unused", sentences(FirstColumns, 3), declared)
    yield "sentence-transformers, duplicates", ("duplicates", sentences(repeated=5), declared)
    yield "sentence-transformers, not divided", ("gradient_scaled", sentences(divide=1), {**declared, **MANY})
    both = _ranking(MultipleNegativesSymmetricRankingLoss)
    yield "sentence-transformers, one direction", ("one_direction", sentences(), both)
    other = sentences(MultipleNegativesSymmetricRankingLoss)
    yield "sentence-transformers, both directions", ("both_directions", other, declared)
    if ClipLoss is None:
        return
    clip, declared = ClipLoss(), _declared(ClipLoss(), temperature=TAU)
    scale: dict[str, Any] = {"more": (1 / TAU,), "normalized": True, "tau": TAU}
    yield "open_clip, τ in place of the scale", ("tau_as_scale", views(clip, **{**scale, "more": (TAU,)}), declared)
    raw = views(clip, more=(1 / TAU,), rate=1e-3)
    yield "open_clip, rows not normalized", ("not_normalized", raw, declared)
    called: Calls = lambda criterion, a, b: criterion(a, b.detach(), 1 / TAU)  # noqa: E731
    yield "open_clip, one side detached", ("detached", views(clip, called, **scale), declared)
    called = lambda criterion, a, b: criterion(a, b.roll(1, 0), 1 / TAU)  # noqa: E731
    yield "open_clip, captions of other images", ("target_shifted", views(clip, called, **scale), declared)
    yield "open_clip, duplicates", ("duplicates", views(clip, repeated=5, **scale), declared)
    yield (
        "open_clip, accumulated, not divided",
        ("gradient_scaled", views(clip, divide=1, **scale), {**declared, **MANY}),
    )
    called = lambda criterion, a, b: criterion(a, b, 1 / TAU, None)  # noqa: E731
    declared = _declared(SigLipLoss(), temperature=TAU, bias=-4.0)
    yield "open_clip, no bias", ("bias_unused", views(SigLipLoss(), called, rate=5e-3, **scale), declared)


def healthy() -> Iterator[tuple[str, tuple[Callable[[Kind], Step], dict[str, Any]]]]:
    """By title."""
    yield "lightly", (views(NT_XENT), _declared(NT_XENT))
    yield "lightly, accumulated", (views(NT_XENT, divide=BATCHES), _declared(NT_XENT, **MANY))
    bank = NTXentLoss(TAU, memory_bank_size=(96, 16))
    yield "lightly, memory bank", (views(bank), _declared(bank))
    yield "metric learning", (labeled(SUP_CON), _declared(SUP_CON))
    yield "metric learning, two views", (views(PAIRS), _declared(PAIRS))
    yield "sentence-transformers", (sentences(), _ranking())
    yield "sentence-transformers, triplets", (sentences(columns=3), _ranking())
    symmetric = MultipleNegativesSymmetricRankingLoss
    yield "sentence-transformers, symmetric", (sentences(symmetric), _ranking(symmetric))
    if ClipLoss is None:
        return
    scale: dict[str, Any] = {"more": (1 / TAU,), "normalized": True}
    yield "open_clip", (views(ClipLoss(), **scale), _declared(ClipLoss()))
    siglip = {**scale, "more": (1 / TAU, torch.tensor(-4.0))}
    yield "open_clip, SigLIP", (views(SigLipLoss(), **siglip), _declared(SigLipLoss()))


PLANTED, HEALTHY = dict(planted()), dict(healthy())
