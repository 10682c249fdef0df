"""The loss of each sample: exact against the whole set, as training saw it, and over augmentations.

The exact loss compares every row with all others through the loss's own (tiled) engine, so nothing
n×n is kept; of a large set it is estimated from some candidates of each anchor (estimate.py).
`training_estimate` is what random batches of the run's size would have said: a softmax loss grows
with the log of the number of negatives, so the two differ. `split_variance` tells the spread that
augmentation causes from that between samples (one-way random effects).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from contrastive_core.distributed import partition
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.progress import OnFraction, ignore_fraction

if TYPE_CHECKING:
    from contrastive_core.samples.candidates import Near

__all__ = [
    "exact_of", "largest_class", "near_of", "outlook", "over_knob", "pairs_of", "per_sample",
    "ranks", "split_variance", "training_estimate",
]  # fmt: skip

DRAWN_OF_CURVES = 1024  # candidates for losses over a knob, which are taken at several values


def per_sample(
    rows: EmbeddingSet,
    loss: str,
    knobs: dict[str, Any] | None = None,
    views: np.ndarray | None = None,
    on_fraction: OnFraction = ignore_fraction,
    device: str = "auto",
    near: Near | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Loss and weight (n) of each sample against all others. Of many processes (torchrun) each
    has a share of the anchors, and meets all candidates.

    Args:
        views: (n, v, d) embeddings of augmented views, for self-supervised pairs; without them
            rows are paired by label.
        on_fraction: called with the fraction done; what it raises stops the work.
        near: by `near_of`: the loss is estimated; None: it is exact.
    Raises: ValueError when no row has a positive, or the loss cannot use such pairs.
    """
    from contrastive_core import losses
    from contrastive_core.distributed import collectives
    from contrastive_core.distributed.sharded_rows import SPREAD

    if near is not None:
        value, weight = _estimated(rows, loss, [knobs or {}], near, views, on_fraction, device)
        return value[0], weight[0]
    criterion, pairs = losses.create(loss, **(knobs or {})), pairs_of(rows, views, device)
    world = collectives.world()
    if world.size > 1:
        share = partition.part_of(len(pairs), (world.rank, world.size))
        pairs = pairs.take_anchors(share)
    value, weight = (SPREAD.whole(x) for x in _of_anchors(criterion, pairs, on_fraction))
    on_fraction(1.0)
    return _of_samples(value, weight, len(rows))


def outlook(
    loss: str,
    knobs: dict[str, Any] | None,
    samples: int,
    views: int,
    width: int,
    positives: int,
    device: str = "auto",
) -> dict[str, int]:
    """What the losses of so many samples will be here, before any is taken: `exact_up_to`, so many
    samples, where these are more and get none; `candidates`, from about how many of them each is
    estimated; neither where they are exact. positives: that a row of the largest group has."""
    from contrastive_core import losses
    from contrastive_core.samples import estimate

    criterion, n = losses.create(loss, **(knobs or {})), samples * views
    up_to = estimate.exact_up_to(criterion, width, device)
    if up_to is not None and samples > up_to // views:
        return {"exact_up_to": up_to // views}
    if not estimate.is_estimated(criterion, n, width, device):
        return {}
    return {"candidates": estimate.candidates_of(n, positives)}


def largest_class(labels: np.ndarray) -> int:
    """How many rows the largest class has, 1 at least."""
    return int(np.bincount(labels[labels >= 0]).max(initial=1))


def near_of(
    rows: EmbeddingSet,
    loss: str,
    knobs: dict[str, Any] | None = None,
    views: np.ndarray | None = None,
    on_fraction: OnFraction = ignore_fraction,
    device: str = "auto",
) -> Near | None:
    """The nearest rows from which the losses of a set so large are estimated; None: they are taken
    exactly."""
    from contrastive_core import losses
    from contrastive_core.samples import estimate

    criterion = losses.create(loss, **(knobs or {}))
    z = rows.features if views is None else views.reshape(-1, views.shape[-1])
    if not estimate.is_estimated(criterion, len(z), z.shape[1], device):
        return None
    return estimate.near_of(criterion, z, device, on_fraction)


def _estimated(
    rows: EmbeddingSet, loss: str, settings: list[dict[str, Any]], near: Near,
    views: np.ndarray | None, on_fraction: OnFraction, device: str, drawn: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Estimated loss and weight (g, n) of each sample at each of the settings."""
    from contrastive_core import losses
    from contrastive_core.distributed import collectives
    from contrastive_core.distributed.sharded_rows import SPREAD
    from contrastive_core.samples import estimate

    criteria, pairs = [losses.create(loss, **s) for s in settings], pairs_of(rows, views, device)
    world = collectives.world()
    share = partition.part_of(len(pairs), (world.rank, world.size))
    local = estimate.estimate(
        criteria, pairs, near.index, share, on_fraction=on_fraction, drawn=drawn
    )
    value, weight = (SPREAD.whole(x.T).T for x in local)
    of_each = [_of_samples(v, w, len(rows)) for v, w in zip(value, weight, strict=True)]
    values, weights = zip(*of_each, strict=True)
    return np.stack(values), np.stack(weights)


def exact_of(
    samples: np.ndarray,
    rows: EmbeddingSet,
    loss: str,
    knobs: dict[str, Any] | None = None,
    views: np.ndarray | None = None,
    device: str = "auto",
) -> np.ndarray:
    """The exact loss (s) of the samples of these numbers (s), NaN where it is undefined; every
    process takes all of them."""
    import torch

    from contrastive_core import losses

    v = 1 if views is None else views.shape[1]
    anchors = (samples[:, None] * v + np.arange(v)).ravel()
    every = pairs_of(rows, views, device)
    pairs = every.take_anchors(torch.from_numpy(anchors).to(every.anchors.device))
    criterion = losses.create(loss, **(knobs or {}))
    value, weight = _of_samples(*_of_anchors(criterion, pairs), len(samples))
    return np.where(weight > 0, value, np.nan)


def _of_samples(value: np.ndarray, weight: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The weighted mean over each sample's anchors, and their weights' sum: (n) each."""
    value, weight = (x.astype(np.float64).reshape(n, -1) for x in (value, weight))
    total = weight.sum(1)
    return (value * weight).sum(1) / np.maximum(total, 1e-30), total


def _of_anchors(
    criterion: Any, pairs: Any, on_fraction: OnFraction = ignore_fraction
) -> tuple[np.ndarray, np.ndarray]:
    """Loss and weight of every anchor."""
    import torch

    with torch.no_grad():
        out = criterion(pairs, on_fraction=on_fraction)
    return out.per_anchor.cpu().numpy(), out.weight.cpu().numpy()


def pairs_of(rows: EmbeddingSet, views: np.ndarray | None = None, device: str = "cpu") -> Any:
    """Who is compared with whom: views of an image, or rows of a class. Raises ValueError."""
    import torch

    from contrastive_core import pairs
    from contrastive_core.ops.neighbors import pick_device

    where = pick_device(device)
    if views is not None:
        return pairs.from_views(torch.from_numpy(views).to(where))
    if rows.labels is None:
        raise ValueError("without labels or augmented views no row has a positive")
    features, labels = (torch.from_numpy(x).to(where) for x in (rows.features, rows.labels))
    return pairs.from_labels(features, labels)


def over_knob(
    rows: EmbeddingSet,
    loss: str,
    knob: str,
    values: Sequence[float],
    knobs: dict[str, Any] | None = None,
    views: np.ndarray | None = None,
    on_fraction: OnFraction = ignore_fraction,
    device: str = "auto",
    near: Near | None = None,
) -> np.ndarray:
    """Loss (n, values) float32 of every sample as a knob takes each value; NaN: undefined. `near`
    as in `per_sample`: all values in one pass, from fewer candidates."""
    columns, settings = [], [{**(knobs or {}), knob: float(value)} for value in values]
    if near is not None:
        value, weight = _estimated(
            rows, loss, settings, near, views, on_fraction, device, DRAWN_OF_CURVES
        )
        return np.where(weight > 0, value, np.nan).T.astype(np.float32)
    for finished, moved in enumerate(settings, 1):
        per_row, weight = per_sample(rows, loss, moved, views, device=device)
        columns.append(np.where(weight > 0, per_row, np.nan).astype(np.float32))
        on_fraction(finished / len(values))
    return np.stack(columns, 1)


def training_estimate(
    rows: EmbeddingSet,
    loss: str,
    knobs: dict[str, Any] | None,
    batch: int,
    repeats: int = 8,
    seed: int = 0,
    views: np.ndarray | None = None,
    device: str = "auto",
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and spread (n) of each sample's loss over random batches of the run's size. Of many
    processes each takes its share of the batches."""
    import torch

    from contrastive_core import losses
    from contrastive_core.distributed import collectives
    from contrastive_core.distributed.sharded_rows import SPREAD

    rng, n, world = np.random.default_rng(seed), len(rows), collectives.world()
    criterion, by_batch = losses.create(loss, **(knobs or {})), np.zeros((repeats, n))
    for r in range(repeats):
        order = rng.permutation(n)
        batches = np.array_split(order, max(1, round(n / max(2, batch))))
        for part in batches[world.rank :: world.size]:
            views_of = None if views is None else views[part]
            labels = None if rows.labels is None else rows.labels[part]
            pairs = pairs_of(EmbeddingSet(rows.features[part], labels), views_of, device)
            value, weight = _of_samples(*_of_anchors(criterion, pairs), len(part))
            by_batch[r, part] = np.where(weight > 0, value, np.nan)
    by_batch = SPREAD.total(torch.from_numpy(by_batch)).numpy()
    defined = np.isfinite(by_batch)
    count = np.maximum(defined.sum(0), 1)
    mean = np.where(defined, by_batch, 0).sum(0) / count
    spread = np.sqrt(np.where(defined, (by_batch - mean) ** 2, 0).sum(0) / count)
    never = ~defined.any(0)
    mean[never] = spread[never] = np.nan
    return mean, spread


def split_variance(by_draw: np.ndarray) -> dict[str, float]:
    """The variance of losses (n, draws) of n samples under several draws of augmentation.

    One-way random effects by moments: `augmentation` is the mean variance within a sample,
    `sample` the variance of the means less what augmentation adds to it; `share` is the part of
    their sum that comes from augmentation.
    """
    draws = by_draw.shape[1]
    if draws < 2:
        raise ValueError("the part of augmentation shows only over two draws or more")
    within = float(by_draw.var(1, ddof=1).mean())
    between = max(0.0, float(by_draw.mean(1).var(ddof=1)) - within / draws)
    total = within + between
    share = within / total if total > 0 else float("nan")
    return {"augmentation": within, "sample": between, "share": share}


def ranks(value: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Rank (n) by loss, 1 the highest; undefined losses come last."""
    defined = np.isfinite(value) & (True if weight is None else weight > 0)
    order = np.argsort(-np.where(defined, value, -np.inf), kind="stable")
    rank = np.empty(len(value), np.int64)
    rank[order] = np.arange(1, len(value) + 1)
    return rank
