"""The loss of each sample: against the whole set, in batches as in training, over augmentations, and under each class.

The exact loss compares every row with all others in the loss's own (tiled) implementation, so nothing n×n is stored.
Above `EXACT_UP_TO` products on a CPU every sample is compared with a random sample of `CANDIDATES` rows instead: the
set is split into random parts, and rows are compared within a part. The loss then refers to that number of samples, as
in a batch. Several rows of a class stay together, so each has positives.

`losses_in_batches` estimates the loss in random batches of the run's size. A softmax loss grows with the log of the
number of negatives, so it differs from the loss against all. `split_variance` separates the variance from augmentation
from that between samples (one-way random effects).

`by_class` gives each row a loss under every class c, on unit rows:
L_i(c) = −log 1/|P_c| Σ_{p ∈ P_c} e^{s_ip/τ} / Σ_{a ≠ i} e^{s_ia/τ}, P_c the other rows of class c. It is the second
form of Khosla et al. (2020, arXiv 2004.11362, eq. 3; `sup_con` with form "in"), with c in the place of the row's own
label. In a large set the sums are estimated: the nearest rows count themselves, and random rows of every class
represent its other rows (Cochran 1977, Sampling Techniques, ch. 5). The nearest row of a class is then that of these
candidates. The random rows are the same for all, `DRAWN` together, or `LEAST` of each class."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from contrastive_core import losses, pairs
from contrastive_core.base.device import pick_device
from contrastive_core.base.memory import mapped_zeros
from contrastive_core.base.messages import N_
from contrastive_core.base.progress import OnFraction, ignore_fraction
from contrastive_core.base.registry import Knobs
from contrastive_core.losses import Loss
from contrastive_core.pairs.types import Pairs
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Neighbors, unit_rows

EXACT_UP_TO = 2e12  # products of one loss: 20 s to a minute of two cores; 88,000 rows of 256
CANDIDATES = 8192  # rows (views), among which those of a larger set have their losses
CANDIDATES_OF_CURVES = 1024  # for losses over a knob, which are taken at several values
TOGETHER = 16  # rows of a class in a part, where it has so many
TEMPERATURE = 0.07  # of the loss by class
DRAWN, LEAST = 8192, 16
CELLS = 1 << 23  # of a block of rows against all others: 32 MB in float32


@dataclass(frozen=True, eq=False)
class LossInputs:
    """Rows and the loss to compute on them. `views` (n, v, d): augmented views of each row, for self-supervised pairs;
    without them rows are paired by label."""

    rows: EmbeddingSet
    loss: str
    knobs: Knobs | None = None
    views: np.ndarray | None = None
    device: str = "auto"

    @property
    def criterion(self) -> Loss:
        return losses.create(self.loss, **(self.knobs or {}))

    def pairs(self) -> Pairs:
        """Build the pairs. Raises ValueError if no row has a positive."""
        device = pick_device(self.device)
        if self.views is not None:
            return pairs.from_views(torch.from_numpy(self.views).to(device))
        if self.rows.labels is None:
            raise ValueError(N_("without labels or augmented views no row has a positive"))
        features, labels = (torch.from_numpy(x).to(device) for x in (self.rows.features, self.rows.labels))
        return pairs.from_labels(features, labels)

    @property
    def candidates(self) -> int | None:
        """The number of random samples that each sample is compared with; None for all."""
        views, width = (1, self.rows.width) if self.views is None else self.views.shape[1:]
        return candidates_of(len(self.rows), views, width, self.device)

    def take(self, part: np.ndarray) -> LossInputs:
        """Return the inputs of some rows."""
        labels = None if self.rows.labels is None else self.rows.labels[part]
        views = None if self.views is None else self.views[part]
        return dataclasses.replace(self, rows=EmbeddingSet(self.rows.features[part], labels), views=views)


def candidates_of(samples: int, views: int, width: int, device: str = "auto") -> int | None:
    """Return the number of random samples in each comparison; None for all. Args: views: per sample."""
    is_exact = float(samples * views) ** 2 * width <= EXACT_UP_TO or pick_device(device).type != "cpu"
    return None if is_exact else CANDIDATES // views


def per_sample(inputs: LossInputs, on_fraction: OnFraction = ignore_fraction) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss (NaN: undefined) and weight (n) of each sample against all others, or in a large set against a
    random sample. `on_fraction`: called with the completed fraction; an exception from it stops the work. Raises
    ValueError when no row has a positive, or the loss cannot use such pairs."""
    if (most := inputs.candidates) is not None:
        return _among(inputs, _random_parts(inputs, most), on_fraction)
    value, weight = _of_anchors(inputs.criterion, inputs.pairs(), on_fraction)
    on_fraction(1.0)
    return _of_samples(value, weight, len(inputs.rows))


def _random_parts(inputs: LossInputs, size: int) -> list[np.ndarray]:
    """Split the samples at random into parts of about `size`, with at least `TOGETHER` rows of a class if possible."""
    draw, n = np.random.default_rng(0), len(inputs.rows)
    number = max(1, round(n / size))
    order, labels = draw.permutation(n), inputs.rows.labels
    if inputs.views is not None or labels is None:
        return np.array_split(order, number)
    part = draw.integers(0, number, n)  # of rows without a label
    for label in np.unique(labels[labels >= 0]):
        members = order[labels[order] == label]
        several = draw.permutation(number)[: max(1, len(members) // TOGETHER)]
        part[members] = several[np.arange(len(members)) % len(several)]
    return [some for p in range(number) if len(some := np.flatnonzero(part == p))]


def _among(
    inputs: LossInputs, parts: Sequence[np.ndarray], on_fraction: OnFraction = ignore_fraction
) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss and weight (n) of each sample within its part."""
    value, weight = np.full(len(inputs.rows), np.nan), np.zeros(len(inputs.rows))
    for number, part in enumerate(parts, 1):
        value[part], weight[part] = _of_samples(*_of_anchors(inputs.criterion, inputs.take(part).pairs()), len(part))
        on_fraction(number / len(parts))
    return value, weight


def _of_samples(value: np.ndarray, weight: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean over each sample's anchors (NaN without any) and the sum of weights: (…, n) each."""
    value, weight = (x.astype(np.float64).reshape(*x.shape[:-1], n, -1) for x in (value, weight))
    total = weight.sum(-1)
    return np.where(total > 0, (value * weight).sum(-1) / np.maximum(total, 1e-30), np.nan), total


def _of_anchors(
    criterion: Loss, pairs: Pairs, on_fraction: OnFraction = ignore_fraction
) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss and weight of every anchor."""
    with torch.no_grad():
        out = criterion(pairs, on_fraction=on_fraction)
    return out.per_anchor.cpu().numpy(), out.weight.cpu().numpy()


def losses_over_knob(
    inputs: LossInputs, knob: str, values: Sequence[float], on_fraction: OnFraction = ignore_fraction
) -> np.ndarray:
    """Return the loss (n, values) float32 of every sample for each value of a knob; NaN: undefined. A large set uses
    fewer samples for comparison than `per_sample`, the same ones for all values."""
    columns = []
    parts = None if inputs.candidates is None else _random_parts(inputs, CANDIDATES_OF_CURVES)
    for finished, value in enumerate(values, 1):
        moved = dataclasses.replace(inputs, knobs={**(inputs.knobs or {}), knob: float(value)})
        columns.append((_among(moved, parts) if parts else per_sample(moved))[0].astype(np.float32))
        on_fraction(finished / len(values))
    return np.stack(columns, 1)


def losses_in_batches(inputs: LossInputs, batch: int, repeats: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and standard deviation (n) of each sample's loss over random batches of size `batch`."""
    rng, n, by_batch = np.random.default_rng(0), len(inputs.rows), []
    for _ in range(repeats):
        by_batch.append(_among(inputs, np.array_split(rng.permutation(n), max(1, round(n / max(2, batch)))))[0])
    values = np.stack(by_batch)
    defined = np.isfinite(values)
    count = np.where(defined.any(0), defined.sum(0), np.nan)
    mean = np.where(defined, values, 0).sum(0) / count
    return mean, np.sqrt(np.where(defined, (values - mean) ** 2, 0).sum(0) / count)


def split_variance(by_draw: np.ndarray) -> dict[str, float]:
    """Split the variance of losses (n, draws) between augmentation and samples. One-way random effects by moments:
    `augmentation` is the mean variance within a sample, `sample` the variance of the means minus the part that
    augmentation adds to it, and `share` the share of augmentation in their sum. Raises ValueError for fewer than two
    draws."""
    draws = by_draw.shape[1]
    if draws < 2:
        raise ValueError(N_("the effect of augmentation needs at least two draws"))
    within = float(by_draw.var(1, ddof=1).mean())
    between = max(0.0, float(by_draw.mean(1).var(ddof=1)) - within / draws)
    total = within + between
    share = within / total if total > 0 else float("nan")
    return {"augmentation": within, "sample": between, "share": share}


def ranks(value: np.ndarray) -> np.ndarray:
    """Return the rank (n) by loss, 1 for the highest; undefined losses come last."""
    order = np.argsort(-np.where(np.isfinite(value), value, -np.inf), kind="stable")
    rank = np.empty(len(value), np.int64)
    rank[order] = np.arange(1, len(value) + 1)
    return rank


# --- the loss by class ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ByClass:
    """Losses of n rows by class, and the nearest row (−1: none) of their own and of another class, with its cosine."""

    losses: np.ndarray  # (n, classes) float32; infinite for a class without another row
    same: np.ndarray  # (n) int64
    same_score: np.ndarray  # (n) float64
    other: np.ndarray  # (n) int64
    other_score: np.ndarray  # (n) float64


def by_class(rows: EmbeddingSet, device: str = "auto", near: Neighbors | None = None, seed: int = 0) -> ByClass:
    """Compute the losses by class: every row against all others, block by block; with `near`, against its nearest rows
    (n, k) by cosine and a random sample. Rows without a label (−1) are compared but belong to no class. Raises
    ValueError without labels."""
    if rows.labels is None:
        raise ValueError(N_("a loss by class needs labels"))
    n, where = len(rows), pick_device(device)
    candidates = _Candidates(rows.labels, n if near is None else DRAWN, seed)
    unit = unit_rows(rows.features[candidates.drawn], where)
    size = max(1, CELLS // len(candidates.drawn))
    losses, found = mapped_zeros((n, len(candidates.counts) - 1)), []
    for start in range(0, n, size):
        block = slice(start, min(start + size, n))
        s = unit_rows(rows.features[block], where) @ unit.mT  # (r, drawn)
        known = (near.index[block], near.score[block]) if near else (np.empty((len(s), 0), int), np.empty((len(s), 0)))
        losses[block], *nearest = _of_block(s, block, candidates, *known)
        found.append(nearest)
    same, same_score, other, other_score = (np.concatenate(part) for part in zip(*found, strict=True))
    return ByClass(losses, same, same_score, other, other_score)


class _Candidates:
    """Candidates for neighbors: the labels of all n rows, and about `most` random rows (m), sorted by class with each
    class in proportion (all rows if n are wanted). `counts` starts with the rows without a class."""

    def __init__(self, labels: np.ndarray, most: int, seed: int) -> None:
        order, counts = np.argsort(labels, kind="stable"), np.bincount(labels + 1, minlength=2)
        self.labels, self.drawn, self.counts = labels, order, counts
        if most < len(order):
            wanted = np.maximum(LEAST, np.round(most * counts / len(order)).astype(int))
            draw, parts = np.random.default_rng(seed), np.split(order, counts.cumsum()[:-1])
            drawn = [p if len(p) <= m else draw.choice(p, m, replace=False) for p, m in zip(parts, wanted, strict=True)]
            self.drawn = np.concatenate(drawn)
        self.drawn_counts = np.bincount(labels[self.drawn] + 1, minlength=len(counts))
        self.column = np.full(len(labels), -1)  # of each row among the drawn ones
        self.column[self.drawn] = np.arange(len(self.drawn))


def _of_block(
    s: Tensor, block: slice, candidates: _Candidates, near: np.ndarray, nearness: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return the values of ByClass for the rows of a block. `s`: (r, m) similarities to the random rows; `near`,
    `nearness`: indices and similarities (r, k) of the nearest rows, which count themselves."""
    labels, counts, classes = candidates.labels, candidates.counts, len(candidates.counts)
    apart = np.concatenate([np.arange(*block.indices(len(labels)))[:, None], near], 1)  # (r, 1 + k)
    column = candidates.column[apart]
    row, number = np.nonzero(column >= 0)
    s[torch.from_numpy(row), torch.from_numpy(column[row, number])] = -torch.inf
    nearest = _nearest_rows(s, labels[block], candidates, near, nearness)
    e = s.sub_(1).div_(TEMPERATURE).exp_()  # 1: the highest cosine, so that nothing overflows
    parts = e.split(candidates.drawn_counts.tolist(), 1)
    mass = torch.stack([part.sum(1) for part in parts], 1).double().cpu().numpy()
    stood_for = counts - sums_by_class(labels[apart] + 1, np.ones(apart.shape), classes)
    mass *= stood_for / np.maximum(candidates.drawn_counts - sums_by_class(labels[apart] + 1, column >= 0, classes), 1)
    mass += sums_by_class(labels[near] + 1, np.exp((nearness.astype(np.float64) - 1) / TEMPERATURE), classes)
    positives = counts[1:] - (np.arange(classes - 1) == labels[block, None])  # |P_c|
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = -np.log(mass[:, 1:] / mass.sum(1, keepdims=True) / positives)
    return np.where(positives > 0, losses, np.inf).astype(np.float32), *nearest


def sums_by_class(labels: np.ndarray, weight: np.ndarray, classes: int) -> np.ndarray:
    """Sum the weights (r, k) by their labels (r, k) to (r, classes)."""
    cell = np.arange(len(labels))[:, None] * classes + labels
    return np.bincount(cell.ravel(), weight.ravel(), len(labels) * classes).reshape(len(labels), classes)


def _nearest_rows(
    s: Tensor, labels: np.ndarray, candidates: _Candidates, near: np.ndarray, nearness: np.ndarray
) -> list[np.ndarray]:
    """Return the nearest row of the own and of another class (r) each, and its similarity; −1 if there is none."""
    ends = candidates.drawn_counts.cumsum()
    present = np.flatnonzero(candidates.drawn_counts[1:])
    best = [s[:, ends[c] : ends[c + 1]].max(1) for c in present]
    at = torch.stack([one.indices for one in best], 1).cpu().numpy() + ends[present]
    rows = np.concatenate([candidates.drawn[at], near], 1)  # (r, classes present + k)
    highest = torch.stack([one.values for one in best], 1).double().cpu().numpy()
    score = np.concatenate([highest, nearness], 1)
    theirs = np.concatenate([np.broadcast_to(present, at.shape), candidates.labels[near]], 1)
    own, found = labels[:, None], []
    for is_among in (theirs == own, theirs != own):
        masked = np.where(is_among & (theirs >= 0) & (own >= 0), score, -np.inf)
        column = masked.argmax(1)[:, None]
        at, highest = (np.take_along_axis(x, column, 1)[:, 0] for x in (rows, masked))
        is_there = np.isfinite(highest)
        found += [np.where(is_there, at, -1), np.where(is_there, highest, -1.0)]
    return found
