"""The loss of each sample: against the whole set, as training saw it, and over augmentations.

The exact loss compares every row with all others through the loss's own (tiled) engine, so nothing n×n is kept. Above
`ESTIMATED_FROM` products a loss that takes weights is estimated from some candidates of each anchor (candidates.py). A
loss that the hardest pair alone decides, or that needs its positives' own negatives, has no such estimate: it is exact
up to `EXACT_ONLY_UP_TO` products, and left out above. An accelerator is fast enough to be exact always.
`losses_in_batches` is what random batches of the run's size would have said: a softmax loss grows with the log of the
number of negatives, so the two differ. `split_variance` tells the spread that augmentation causes from that between
samples (one-way random effects).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from contrastive_core import losses, pairs
from contrastive_core.device import pick_device
from contrastive_core.distributed import collectives
from contrastive_core.distributed.sharded_rows import SPREAD
from contrastive_core.losses import Loss
from contrastive_core.messages import N_
from contrastive_core.ops.neighbors import APPROXIMATE_FROM, Neighbors
from contrastive_core.pairs.types import Pairs
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.samples import candidates
from contrastive_core.storage.large_arrays import part_of

ESTIMATED_FROM = APPROXIMATE_FROM  # products of one loss: 20 s to a minute of two cores
EXACT_ONLY_UP_TO = 10 * ESTIMATED_FROM
DRAWN_OF_CURVES = 1024  # candidates for losses over a knob, which are taken at several values


@dataclass(frozen=True, eq=False)
class LossInputs:
    """Rows and the loss that is taken of them. `views` (n, v, d): augmented views of each row, for self-supervised
    pairs; without them rows are paired by label."""

    rows: EmbeddingSet
    loss: str
    knobs: Mapping[str, Any] | None = None
    views: np.ndarray | None = None
    device: str = "auto"

    @property
    def criterion(self) -> Loss:
        return losses.create(self.loss, **(self.knobs or {}))

    def pairs(self) -> Pairs:
        """Who is compared with whom. Raises ValueError where no row has a positive."""
        device = pick_device(self.device)
        if self.views is not None:
            return pairs.from_views(torch.from_numpy(self.views).to(device))
        if self.rows.labels is None:
            raise ValueError(N_("without labels or augmented views no row has a positive"))
        features, labels = (torch.from_numpy(x).to(device) for x in (self.rows.features, self.rows.labels))
        return pairs.from_labels(features, labels)

    def moved(self, knob: str, value: float) -> LossInputs:
        """The same with another value of a knob."""
        return dataclasses.replace(self, knobs={**(self.knobs or {}), knob: float(value)})

    def take(self, part: np.ndarray) -> LossInputs:
        """Some of the rows."""
        labels = None if self.rows.labels is None else self.rows.labels[part]
        views = None if self.views is None else self.views[part]
        return dataclasses.replace(self, rows=EmbeddingSet(self.rows.features[part], labels), views=views)


def is_estimated(loss: Loss, n: int, width: int, device: str = "auto") -> bool:
    """Whether the losses of n rows (views) of this width are estimated here."""
    large = float(n) ** 2 * width > ESTIMATED_FROM
    return large and loss.takes_weights and pick_device(device).type == "cpu"


def exact_up_to(loss: Loss, width: int, device: str = "auto") -> int | None:
    """Rows (views) of this width up to which the loss is taken at all; None: however many."""
    if loss.takes_weights or pick_device(device).type != "cpu":
        return None
    return math.isqrt(int(EXACT_ONLY_UP_TO / width))


def outlook(
    loss: str,
    knobs: Mapping[str, Any] | None,
    samples: int,
    views: int,
    width: int,
    positives: int,
    device: str = "auto",
) -> dict[str, int]:
    """How the losses of so many samples will be taken here: `exact_up_to`, so many samples, where there are more and
    none is taken; `candidates`, from about how many of them each is estimated; neither where they are exact.
    `positives`: that a row of the largest group has."""
    criterion, n = losses.create(loss, **(knobs or {})), samples * views
    up_to = exact_up_to(criterion, width, device)
    if up_to is not None and samples > up_to // views:
        return {"exact_up_to": up_to // views}
    if not is_estimated(criterion, n, width, device):
        return {}
    return {"candidates": candidates.candidates_of(n, positives)}


def find_near(inputs: LossInputs, on_fraction: OnFraction = ignore_fraction) -> Neighbors | None:
    """The nearest rows, as the loss compares them, from which the losses of a set so large are estimated; None: they
    are taken exactly. For products of raw rows by cosine, which finds most of the largest."""
    views, criterion = inputs.views, inputs.criterion
    z = inputs.rows.features if views is None else views.reshape(-1, views.shape[-1])
    if not is_estimated(criterion, len(z), z.shape[1], inputs.device):
        return None
    by_angle = criterion.normalize or criterion.score == "dot"
    return candidates.near(z, "cosine" if by_angle else "euclidean", inputs.device, on_fraction)


def per_sample(
    inputs: LossInputs, on_fraction: OnFraction = ignore_fraction, near: Neighbors | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Loss (NaN: undefined) and weight (n) of each sample against all others. Of many processes (torchrun) each has a
    share of the anchors, and meets all candidates. `on_fraction`: called with the fraction done; what it raises stops
    the work. `near`: by `find_near`: the loss is estimated; None: it is exact. Raises: ValueError when no row has a
    positive, or the loss cannot use such pairs."""
    if near is not None:
        value, weight = _estimated([inputs], near, on_fraction)
        return value[0], weight[0]
    every, world = inputs.pairs(), collectives.world()
    if world.size > 1:
        every = every.take_anchors(part_of(len(every), (world.rank, world.size)))
    value, weight = (SPREAD.whole(x) for x in _of_anchors(inputs.criterion, every, on_fraction))
    on_fraction(1.0)
    return _of_samples(value, weight, len(inputs.rows))


def _estimated(
    settings: Sequence[LossInputs], near: Neighbors, on_fraction: OnFraction, drawn: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Estimated loss and weight (g, n) of each sample at each of the settings, which differ in their knobs."""
    criteria, every, world = [s.criterion for s in settings], settings[0].pairs(), collectives.world()
    share = part_of(len(every), (world.rank, world.size))
    local = candidates.estimate(criteria, every, near.index, share, on_fraction=on_fraction, drawn=drawn)
    value, weight = (SPREAD.whole(x.T).T for x in local)
    return _of_samples(value, weight, len(settings[0].rows))


def exact_losses(samples: np.ndarray, inputs: LossInputs) -> np.ndarray:
    """The exact loss (s) of samples by number (s), NaN where it is undefined; every process takes all of them."""
    v = 1 if inputs.views is None else inputs.views.shape[1]
    anchors = (samples[:, None] * v + np.arange(v)).ravel()
    every = inputs.pairs()
    some = every.take_anchors(torch.from_numpy(anchors).to(every.anchors.device))
    return _of_samples(*_of_anchors(inputs.criterion, some), len(samples))[0]


def _of_samples(value: np.ndarray, weight: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The weighted mean over each sample's anchors, NaN where none counts, and their weights' sum: (…, n) each."""
    value, weight = (x.astype(np.float64).reshape(*x.shape[:-1], n, -1) for x in (value, weight))
    total = weight.sum(-1)
    return np.where(total > 0, (value * weight).sum(-1) / np.maximum(total, 1e-30), np.nan), total


def _of_anchors(
    criterion: Loss, pairs: Pairs, on_fraction: OnFraction = ignore_fraction
) -> tuple[np.ndarray, np.ndarray]:
    """Loss and weight of every anchor."""
    with torch.no_grad():
        out = criterion(pairs, on_fraction=on_fraction)
    return out.per_anchor.cpu().numpy(), out.weight.cpu().numpy()


def losses_over_knob(
    inputs: LossInputs,
    knob: str,
    values: Sequence[float],
    on_fraction: OnFraction = ignore_fraction,
    near: Neighbors | None = None,
) -> np.ndarray:
    """Loss (n, values) float32 of every sample as a knob takes each value; NaN: undefined. `near` as in `per_sample`:
    all values in one pass, from fewer candidates."""
    columns, settings = [], [inputs.moved(knob, value) for value in values]
    if near is not None:
        return _estimated(settings, near, on_fraction, DRAWN_OF_CURVES)[0].T.astype(np.float32)
    for finished, moved in enumerate(settings, 1):
        columns.append(per_sample(moved)[0].astype(np.float32))
        on_fraction(finished / len(values))
    return np.stack(columns, 1)


def losses_in_batches(inputs: LossInputs, batch: int, repeats: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Mean and spread (n) of each sample's loss over random batches of the run's size, shared among processes."""
    rng, n, world = np.random.default_rng(0), len(inputs.rows), collectives.world()
    criterion, by_batch = inputs.criterion, np.zeros((repeats, n))
    for r in range(repeats):
        batches = np.array_split(rng.permutation(n), max(1, round(n / max(2, batch))))
        for part in batches[world.rank :: world.size]:
            by_batch[r, part], _ = _of_samples(*_of_anchors(criterion, inputs.take(part).pairs()), len(part))
    by_batch = SPREAD.total(torch.from_numpy(by_batch)).numpy()
    defined = np.isfinite(by_batch)
    count = np.where(defined.any(0), defined.sum(0), np.nan)
    mean = np.where(defined, by_batch, 0).sum(0) / count
    return mean, np.sqrt(np.where(defined, (by_batch - mean) ** 2, 0).sum(0) / count)


def split_variance(by_draw: np.ndarray) -> dict[str, float]:
    """The variance of losses (n, draws) of n samples under several draws of augmentation. One-way random effects by
    moments: `augmentation` is the mean variance within a sample, `sample` the variance of the means less what
    augmentation adds to it; `share` is the part of their sum that comes from augmentation."""
    draws = by_draw.shape[1]
    if draws < 2:
        raise ValueError(N_("the part of augmentation shows only over two draws or more"))
    within = float(by_draw.var(1, ddof=1).mean())
    between = max(0.0, float(by_draw.mean(1).var(ddof=1)) - within / draws)
    total = within + between
    share = within / total if total > 0 else float("nan")
    return {"augmentation": within, "sample": between, "share": share}


def ranks(value: np.ndarray) -> np.ndarray:
    """Rank (n) by loss, 1 the highest; undefined losses come last."""
    order = np.argsort(-np.where(np.isfinite(value), value, -np.inf), kind="stable")
    rank = np.empty(len(value), np.int64)
    rank[order] = np.arange(1, len(value) + 1)
    return rank
