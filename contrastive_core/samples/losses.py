"""The loss of each sample: exact against the whole set, as training saw it, and over augmentations.

The exact loss compares every row with all others through the loss's own (tiled) engine, so nothing
n×n is kept. `training_estimate` is what random batches of the run's size would have said: a
softmax loss grows with the log of the number of negatives, so the two differ. `split_variance`
tells the spread that augmentation causes from that between samples (one-way random effects).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from contrastive_core.distributed import partition
from contrastive_core.embeddings.embedding_set import EmbeddingSet

__all__ = [
    "Tell", "over_knob", "pairs_of", "per_sample", "ranks", "split_variance", "training_estimate",
]  # fmt: skip

CHUNK = 8192  # anchors between two reports of progress
Tell = Callable[[float], None]


def per_sample(
    rows: EmbeddingSet,
    loss: str,
    knobs: dict[str, Any] | None = None,
    views: np.ndarray | None = None,
    tell: Tell | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Loss and weight (n) of each sample against all others. Of many processes (torchrun) each
    has a share of the anchors, and meets all candidates.

    Args:
        views: (n, v, d) embeddings of augmented views, for self-supervised pairs; without them
            rows are paired by label.
        tell: called with the share done; what it raises stops the work.
    Raises: ValueError when no row has a positive, or the loss cannot use such pairs.
    """
    from contrastive_core import losses
    from contrastive_core.distributed import collectives
    from contrastive_core.distributed.sharded_rows import SPREAD
    from contrastive_core.losses._base import slice_rows

    made, whole = losses.create(loss, **(knobs or {})), pairs_of(rows, views)
    world = collectives.world()
    if world.size > 1:
        whole = slice_rows(whole, partition.part_of(len(whole), (world.rank, world.size)))
    value, weight = (SPREAD.whole(x) for x in _of_anchors(made, whole, tell))
    if tell:
        tell(1.0)
    return _of_samples(value, weight, len(rows))


def _of_samples(value: np.ndarray, weight: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The weighted mean over each sample's anchors, and their weights' sum: (n) each."""
    value, weight = (x.astype(np.float64).reshape(n, -1) for x in (value, weight))
    total = weight.sum(1)
    return (value * weight).sum(1) / np.maximum(total, 1e-30), total


def _of_anchors(made: Any, whole: Any, tell: Tell | None) -> tuple[np.ndarray, np.ndarray]:
    """Loss and weight of every anchor."""
    import torch

    from contrastive_core.ops.thread_pool import watched

    in_rounds = made.family == "softmax" and whole.by_id  # the engine sees all anchors at once
    with torch.no_grad():
        if tell and not in_rounds and len(whole) > CHUNK:
            value, weight = _in_chunks(made, whole, tell)
        else:
            with watched(tell or _silent):
                out = made(whole)
            value, weight = out.per_anchor, out.weight
    return value.cpu().numpy(), weight.cpu().numpy()


def _silent(share: float) -> None:
    """Nobody asks how far it is."""


def pairs_of(rows: EmbeddingSet, views: np.ndarray | None = None) -> Any:
    """Who is compared with whom: views of an image, or rows of a class. Raises ValueError."""
    import torch

    from contrastive_core import pairs

    if views is not None:
        return pairs.from_views(torch.from_numpy(views))
    if rows.labels is None:
        raise ValueError("without labels or augmented views no row has a positive")
    return pairs.from_labels(torch.from_numpy(rows.features), torch.from_numpy(rows.labels))


def _in_chunks(made: Any, whole: Any, tell: Tell) -> tuple[Any, Any]:
    import torch

    from contrastive_core.losses._base import slice_rows

    values, weights = [], []
    for start in range(0, len(whole), CHUNK):
        out = made(slice_rows(whole, slice(start, start + CHUNK)))
        values.append(out.per_anchor)
        weights.append(out.weight)
        tell(min(1.0, (start + CHUNK) / len(whole)))
    return torch.cat(values), torch.cat(weights)


def over_knob(
    rows: EmbeddingSet,
    loss: str,
    knob: str,
    values: Sequence[float],
    knobs: dict[str, Any] | None = None,
    views: np.ndarray | None = None,
    tell: Tell | None = None,
) -> np.ndarray:
    """Loss (n, values) float32 of every sample as a knob takes each value; NaN: undefined."""
    found = []
    for done, value in enumerate(values, 1):
        loss_, weight = per_sample(rows, loss, {**(knobs or {}), knob: float(value)}, views)
        found.append(np.where(weight > 0, loss_, np.nan).astype(np.float32))
        if tell:
            tell(done / len(values))
    return np.stack(found, 1)


def training_estimate(
    rows: EmbeddingSet,
    loss: str,
    knobs: dict[str, Any] | None,
    batch: int,
    repeats: int = 8,
    seed: int = 0,
    views: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and spread (n) of each sample's loss over random batches of the run's size. Of many
    processes each takes its share of the batches."""
    import torch

    from contrastive_core import losses
    from contrastive_core.distributed import collectives
    from contrastive_core.distributed.sharded_rows import SPREAD

    rng, n, world = np.random.default_rng(seed), len(rows), collectives.world()
    made, seen = losses.create(loss, **(knobs or {})), np.zeros((repeats, n))
    for r in range(repeats):
        order = rng.permutation(n)
        batches = np.array_split(order, max(1, round(n / max(2, batch))))
        for part in batches[world.rank :: world.size]:
            own = None if views is None else views[part]
            labels = None if rows.labels is None else rows.labels[part]
            whole = pairs_of(EmbeddingSet(rows.features[part], labels), own)
            value, weight = _of_samples(*_of_anchors(made, whole, None), len(part))
            seen[r, part] = np.where(weight > 0, value, np.nan)
    seen = SPREAD.total(torch.from_numpy(seen)).numpy()
    known = np.isfinite(seen)
    count = np.maximum(known.sum(0), 1)
    mean = np.where(known, seen, 0).sum(0) / count
    spread = np.sqrt(np.where(known, (seen - mean) ** 2, 0).sum(0) / count)
    never = ~known.any(0)
    mean[never] = spread[never] = np.nan
    return mean, spread


def split_variance(found: np.ndarray) -> dict[str, float]:
    """The variance of losses (n, draws) of n samples under several draws of augmentation.

    One-way random effects by moments: `augmentation` is the mean variance within a sample,
    `sample` the variance of the means less what augmentation adds to it; `share` is the part of
    their sum that comes from augmentation.
    """
    draws = found.shape[1]
    if draws < 2:
        raise ValueError("the part of augmentation shows only over two draws or more")
    within = float(found.var(1, ddof=1).mean())
    between = max(0.0, float(found.mean(1).var(ddof=1)) - within / draws)
    total = within + between
    share = within / total if total > 0 else float("nan")
    return {"augmentation": within, "sample": between, "share": share}


def ranks(value: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Rank (n) by loss, 1 the highest; undefined losses come last."""
    known = np.isfinite(value) & (True if weight is None else weight > 0)
    order = np.argsort(-np.where(known, value, -np.inf), kind="stable")
    found = np.empty(len(value), np.int64)
    found[order] = np.arange(1, len(value) + 1)
    return found
