"""The loss of each sample: against the whole set, and under each class.

The exact loss compares every row with all others in the loss's own (tiled) implementation, so nothing n×n is stored.
Above `EXACT_UP_TO` products on a CPU every sample is compared with a random sample of `CANDIDATES` rows instead: the
set is split into random parts, and rows are compared within a part. The loss then refers to that number of samples, as
in a batch. Several rows of a class stay together, so each has positives.

`by_class` gives each row a loss under every class c, on unit rows:
L_i(c) = −log 1/|P_c| Σ_{p ∈ P_c} e^{s_ip/τ} / Σ_{a ≠ i} e^{s_ia/τ}, P_c the other rows of class c. It is the second
form of Khosla et al. (2020, arXiv 2004.11362, eq. 3; `sup_con` with form "in"), with c in the place of the row's own
label. In a large set the sums are estimated: the nearest rows count themselves, and random rows of every class
represent its other rows (Cochran 1977, Sampling Techniques, ch. 5). The nearest row of a class is then that of these
candidates. The random rows are the same for all, `DRAWN` together, or `LEAST` of each class."""

import dataclasses
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
from contrastive_core.pairs.types import Pairs
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Neighbors, unit_rows

EXACT_UP_TO = 2e12  # products of one loss: 20 s to a minute of two cores; 88,000 rows of 256
CANDIDATES = 8192  # rows (views), among which those of a larger set have their losses
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
    def criterion(self) -> losses.Loss:
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
        is_exact = float(len(self.rows) * views) ** 2 * width <= EXACT_UP_TO
        return None if is_exact or pick_device(self.device).type != "cpu" else CANDIDATES // views

    def take(self, part: np.ndarray) -> "LossInputs":
        """Return the inputs of some rows."""
        labels = None if self.rows.labels is None else self.rows.labels[part]
        views = None if self.views is None else self.views[part]
        return dataclasses.replace(self, rows=EmbeddingSet(self.rows.features[part], labels), views=views)


def per_sample(inputs: LossInputs, on_fraction: OnFraction = ignore_fraction) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss (n) of each sample, the weighted mean over its anchors (NaN: undefined), and its weight (n),
    against all others, or in a large set against a random sample. `on_fraction`: called with the completed fraction; an
    exception from it stops the work. Raises ValueError when no row has a positive, or the loss cannot use such
    pairs."""
    value, weight, criterion = np.full(len(inputs.rows), np.nan), np.zeros(len(inputs.rows)), inputs.criterion
    most = inputs.candidates
    parts = [np.arange(len(value))] if most is None else random_parts(inputs, most)
    for number, part in enumerate(parts):
        some = inputs if most is None else inputs.take(part)
        on_part = part_of(on_fraction, number, len(parts))
        with torch.no_grad():
            out = criterion(some.pairs(), on_fraction=on_part)
        loss, w = (x.double().cpu().numpy().reshape(len(part), -1) for x in (out.per_anchor, out.weight))
        weight[part] = total = w.sum(1)
        value[part] = np.where(total > 0, (loss * w).sum(1) / np.maximum(total, 1e-30), np.nan)
        on_part(1.0)
    return value, weight


def part_of(on_fraction: OnFraction, number: int, parts: int) -> OnFraction:
    """Map the fraction of one of several equal parts to the fraction of the whole."""
    return lambda fraction: on_fraction((number + fraction) / parts)


def random_parts(inputs: LossInputs, size: int) -> list[np.ndarray]:
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
    if (labels := rows.labels) is None:
        raise ValueError(N_("a loss by class needs labels"))
    n, where, order = len(rows), pick_device(device), np.argsort(labels, kind="stable")
    drawn, counts = order, np.bincount(labels + 1, minlength=2)  # the first: rows without a class
    if near is not None and n > DRAWN:  # each class in proportion
        wanted = np.maximum(LEAST, np.round(DRAWN * counts / n).astype(int))
        draw, parts = np.random.default_rng(seed), np.split(order, counts.cumsum()[:-1])
        some = [p if len(p) <= m else draw.choice(p, m, replace=False) for p, m in zip(parts, wanted, strict=True)]
        drawn = np.concatenate(some)
    classes, of_each = len(counts), np.bincount(labels[drawn] + 1, minlength=len(counts))
    column = np.full(n, -1)  # of each row among the drawn ones
    column[drawn] = np.arange(len(drawn))
    unit, size = unit_rows(rows.features[drawn], where), max(1, CELLS // len(drawn))
    losses, found = mapped_zeros((n, classes - 1)), []
    for start in range(0, n, size):
        own = np.arange(start, min(start + size, n))
        near_at, nearness = np.empty((len(own), 0), int), np.empty((len(own), 0))
        if near is not None:
            near_at, nearness = near.index[own], near.score[own]
        s = unit_rows(rows.features[own], where) @ unit.mT  # (r, drawn)
        apart = np.concatenate([own[:, None], near_at], 1)  # (r, 1 + k) count themselves, or not at all
        row, number = np.nonzero(column[apart] >= 0)
        s[torch.from_numpy(row), torch.from_numpy(column[apart][row, number])] = -torch.inf
        found.append(_nearest_rows(s, labels, own, drawn, of_each, near_at, nearness))
        e = s.sub_(1).div_(TEMPERATURE).exp_()  # 1: the highest cosine, so that nothing overflows
        mass = torch.stack([part.sum(1) for part in e.split(of_each.tolist(), 1)], 1).double().cpu().numpy()
        stood_for = counts - sums_by_class(labels[apart] + 1, np.ones(apart.shape), classes)
        present = of_each - sums_by_class(labels[apart] + 1, column[apart] >= 0, classes)
        mass *= stood_for / np.maximum(present, 1)
        mass += sums_by_class(labels[near_at] + 1, np.exp((nearness.astype(np.float64) - 1) / TEMPERATURE), classes)
        positives = counts[1:] - (np.arange(classes - 1) == labels[own, None])  # |P_c|
        with np.errstate(divide="ignore", invalid="ignore"):
            of_class = -np.log(mass[:, 1:] / mass.sum(1, keepdims=True) / positives)
        losses[own] = np.where(positives > 0, of_class, np.inf)
    same, same_score, other, other_score = (np.concatenate(part) for part in zip(*found, strict=True))
    return ByClass(losses=losses, same=same, same_score=same_score, other=other, other_score=other_score)


def sums_by_class(labels: np.ndarray, weight: np.ndarray, classes: int) -> np.ndarray:
    """Sum the weights (r, k) by their labels (r, k) to (r, classes)."""
    cell = np.arange(len(labels))[:, None] * classes + labels
    return np.bincount(cell.ravel(), weight.ravel(), len(labels) * classes).reshape(len(labels), classes)


def _nearest_rows(
    s: Tensor,
    labels: np.ndarray,
    own: np.ndarray,
    drawn: np.ndarray,
    of_each: np.ndarray,
    near: np.ndarray,
    nearness: np.ndarray,
) -> list[np.ndarray]:
    """Return the nearest row of the own and of another class of each row `own` (r), and its similarity; −1 if there is
    none. `s`: (r, m) to the `drawn` rows, `of_each` of each class; `near`, `nearness`: the nearest rows (r, k)."""
    ends = of_each.cumsum()
    present = np.flatnonzero(of_each[1:])
    best = [s[:, ends[c] : ends[c + 1]].max(1) for c in present]
    at = torch.stack([one.indices for one in best], 1).cpu().numpy() + ends[present]
    rows = np.concatenate([drawn[at], near], 1)  # (r, classes present + k)
    highest = torch.stack([one.values for one in best], 1).double().cpu().numpy()
    score = np.concatenate([highest, nearness], 1)
    theirs = np.concatenate([np.broadcast_to(present, at.shape), labels[near]], 1)
    label, found = labels[own, None], []
    for is_among in (theirs == label, theirs != label):
        masked = np.where(is_among & (theirs >= 0) & (label >= 0), score, -np.inf)
        column = masked.argmax(1)[:, None]
        at, highest = (np.take_along_axis(x, column, 1)[:, 0] for x in (rows, masked))
        is_there = np.isfinite(highest)
        found += [np.where(is_there, at, -1), np.where(is_there, highest, -1.0)]
    return found
