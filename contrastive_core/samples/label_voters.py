"""Class probabilities of each row from five voters that have not seen its label.

- loss: the supervised contrastive loss of the row under each class in turn, e^{−L} (below).
- neighbors: the K nearest other rows, weighted e^{s/0.07} as in kNN.
- probe: a logistic regression on unit rows, strength C = 10, fitted without the row's fold.
- scaled_probe: the same on standardized columns, C = 0.1; which of the two is better depends on the encoder.
- discriminant: linear discriminant analysis with a shrunk covariance (Ledoit & Wolf 2004, J. Multivariate Analysis 88),
  fitted without the row's fold.

Each gives every row a probability per class, (n, classes), rows that sum to 1. Their training labels can be limited to
some rows; all rows get votes. The classifiers are trained on at most `LEARNED` random rows of the other folds; two
folds are enough for sets twice as large.

The loss under class c is L_i(c) = −log 1/|P_c| Σ_{p ∈ P_c} e^{s_ip/τ} / Σ_{a ≠ i} e^{s_ia/τ}, P_c the other rows of
class c: the second form of Khosla et al. (2020, arXiv 2004.11362, eq. 3; `sup_con` with form "in"), with c in the place
of the row's own label, on unit rows. It is the log of a mean of softmax probabilities, so e^{−L_i(c)}, normalized to
sum 1, is a vote for the class; the row's own label is not used. In a large set the sums are estimated: the nearest rows
count themselves, and random rows of every class represent its other rows (Cochran 1977, Sampling Techniques, ch. 5).
The nearest row of a class is then that of these candidates. The random rows are the same for all, `DRAWN` together, or
`LEAST` of each class."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import softmax
from sklearn.covariance import ledoit_wolf
from torch import Tensor

from contrastive_core.base.device import pick_device
from contrastive_core.base.large_arrays import mapped_zeros, rows_of_sample
from contrastive_core.base.messages import N_
from contrastive_core.metrics.linear_probe import Logistic
from contrastive_core.ops.neighbors import Neighbors
from contrastive_core.ops.similarity import unit_rows
from contrastive_core.samples.sample_table import K
from contrastive_core.spaces.embedding_set import EmbeddingSet

VOTERS = ("loss", "neighbors", "probe", "scaled_probe", "discriminant")
FOLDS = 5
LEARNED = 50_000
BLOCK = 1 << 14  # rows that are voted on at a time
C = 10.0  # strength of the probe
SCALED_C = 0.1  # of that on standardized columns
TEMPERATURE = 0.07  # of the loss and of the neighbors' vote
DRAWN, LEAST = 8192, 16
CELLS = 1 << 23  # of a block of rows against all others: 32 MB in float32

Vote = Callable[[np.ndarray], np.ndarray]  # of rows (q, d) the probabilities (q, classes)
Fit = Callable[[np.ndarray, np.ndarray], Vote]  # to rows (m, d) and their labels, all of 0 … there
Change = Callable[[np.ndarray], np.ndarray]  # of rows (q, d)


@dataclass(frozen=True, eq=False)
class ByClass:
    """Losses of n rows by class, and the nearest row (−1: none) of their own and of another class, with its cosine."""

    losses: np.ndarray  # (n, classes) float32; infinite for a class of which there is no other row
    same: np.ndarray  # (n) int64
    same_score: np.ndarray  # (n) float64
    other: np.ndarray  # (n) int64
    other_score: np.ndarray  # (n) float64


@dataclass(frozen=True, eq=False)
class Votes:
    """Probabilities (n, classes) float32 by voter, and the loss of each row under each class."""

    by_voter: dict[str, np.ndarray]
    by_class: ByClass

    def mean(self) -> np.ndarray:
        """Return the voters' mean probability (n, classes)."""
        return self.mixed(dict.fromkeys(self.by_voter, 1 / len(self.by_voter)))

    def mixed(self, weights: Mapping[str, float]) -> np.ndarray:
        """Return the weighted mean of the voters' probabilities (n, classes)."""
        total = mapped_zeros(next(iter(self.by_voter.values())).shape)
        for start in range(0, len(total), BLOCK):
            part = slice(start, start + BLOCK)
            for name, weight in weights.items():
                total[part] += np.float32(weight) * self.by_voter[name][part]
        return total


def vote(rows: EmbeddingSet, graph: Neighbors, learned: np.ndarray, device: str = "auto") -> Votes:
    """Run all voters on all rows. `graph`: the nearest other rows of each, more than K, because some have no usable
    label. `learned`: (n) bool, the rows whose labels the voters may use; −1 labels are never used."""
    assert rows.labels is not None
    labels, classes = np.where(learned, rows.labels, -1), int(rows.labels.max()) + 1
    near = None if graph.recall is None else graph
    losses = by_class(EmbeddingSet(rows.features, labels), device, near)
    votes = {
        "loss": class_votes(losses.losses, classes),
        "neighbors": _votes_of_neighbors(graph, labels, classes),
        "probe": out_of_fold(rows.features, labels, classes, _changed(_unit, _probe(device, C))),
        "scaled_probe": out_of_fold(rows.features, labels, classes, _changed(_standardized, _probe(device, SCALED_C))),
        "discriminant": out_of_fold(rows.features, labels, classes, _changed(_unit, discriminant)),
    }
    return Votes(votes, losses)


def _votes_of_neighbors(graph: Neighbors, labels: np.ndarray, classes: int) -> np.ndarray:
    """Return votes (n, classes) of the K nearest labeled rows; uniform for a row without any."""
    votes = mapped_zeros((len(labels), classes))
    for start in range(0, len(labels), BLOCK):
        block = slice(start, start + BLOCK)
        near, score = labels[graph.index[block]], graph.score[block]  # (r, k)
        counted = (near >= 0) & ((near >= 0).cumsum(1) <= K)
        weight = np.exp((score - score[:, :1]) / TEMPERATURE) * counted
        of_each = sums_by_class(np.maximum(near, 0), weight, classes) + 1e-12
        votes[block] = of_each / of_each.sum(1, keepdims=True)
    return votes


def out_of_fold(x: np.ndarray, labels: np.ndarray, classes: int, fit: Fit) -> np.ndarray:
    """Return class probabilities (n, classes) float32 of each row by a classifier trained without it. `x`: (n, d).
    `labels`: (n), −1: not for training. `fit`: trains on (m, d) rows and their labels 0 … classes − 1."""
    labeled = np.flatnonzero(labels >= 0)
    number = folds_of(len(labeled))
    fold = np.arange(len(x)) % number  # of rows that nobody learns from
    fold[labeled] = folds(labels[labeled], number)
    p = mapped_zeros((len(x), classes))
    for f in range(number):
        test = np.flatnonzero(fold == f)
        others = labeled[fold[labeled] != f]
        train = others[rows_of_sample(len(others), LEARNED)]
        present, y = np.unique(labels[train], return_inverse=True)
        vote = fit(x[train], y) if len(test) and len(present) > 1 else None
        for part in np.split(test, range(BLOCK, len(test), BLOCK)):
            if len(present):
                p[np.ix_(part, present)] = 1 if vote is None else vote(x[part])
    return p


def folds_of(n: int) -> int:
    """Return the number of folds for n rows: 2 if half of the rows are at least LEARNED, otherwise FOLDS."""
    return 2 if n >= 2 * LEARNED else FOLDS


def folds(y: np.ndarray, number: int = FOLDS) -> np.ndarray:
    """Assign a fold to each row (n), with every class, even a small one, spread evenly over the folds."""
    rng, fold = np.random.default_rng(0), np.empty(len(y), np.int64)
    start = 0
    for label in np.unique(y):
        at = rng.permutation(np.flatnonzero(y == label))
        fold[at] = (start + np.arange(len(at))) % number
        start += len(at)
    return fold


def _changed(change_for: Callable[[np.ndarray], Change], fit: Fit) -> Fit:
    """Apply `fit` to rows transformed by `change_for`, which is given the training rows."""

    def fit_changed(x: np.ndarray, y: np.ndarray) -> Vote:
        change = change_for(x)
        vote = fit(change(x), y)
        return lambda other: vote(change(other))

    return fit_changed


def _unit(_: np.ndarray) -> Change:
    """Return a function that scales rows to length 1."""
    return lambda x: x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)


def _standardized(x: np.ndarray) -> Change:
    """Return a function that standardizes columns with the training rows' mean and deviation (constant column: 0)."""
    x = x.astype(np.float64)
    mean, deviation = x.mean(0), x.std(0)
    scale = np.where(deviation > 1e-12 * (1 + np.abs(mean)), deviation, np.inf)
    return lambda other: (other.astype(np.float64) - mean) / scale


def _probe(device: str, c: float) -> Fit:
    """Return a logistic regression that uses the solver of the linear probe."""
    where = pick_device(device)

    def fit(x: np.ndarray, y: np.ndarray) -> Vote:
        train, target = torch.from_numpy(x).to(where).double(), torch.from_numpy(y).to(where)
        w = Logistic(train, target, int(y.max()) + 1).fit(c, tolerance=1e-5)

        def vote(other: np.ndarray) -> np.ndarray:
            test = torch.from_numpy(other).to(where).double()
            return np.asarray((test @ w[:-1] + w[-1]).softmax(1).cpu().numpy())

        return vote

    return fit


def discriminant(x: np.ndarray, y: np.ndarray) -> Vote:
    """Fit a linear discriminant analysis with one shrunk covariance for all classes, which suits small classes."""
    x, counts = x.astype(np.float64), np.bincount(y)
    means = np.stack([x[y == c].mean(0) for c in range(len(counts))])
    covariance = ledoit_wolf(x - means[y], assume_centered=True)[0]
    ridge = 1e-6 * (np.trace(covariance) / len(covariance) + np.finfo(np.float64).tiny ** 0.25)
    solved = np.linalg.solve(covariance + ridge * np.eye(len(covariance)), means.T)  # (d, classes)
    level = np.log(counts / len(y)) - 0.5 * (means.T * solved).sum(0)
    return lambda other: np.asarray(softmax(other.astype(np.float64) @ solved + level, axis=1))


# --- the loss by class ----------------------------------------------------------------------------


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


def class_votes(losses: np.ndarray, classes: int) -> np.ndarray:
    """Return e^{−L} of losses (n, c), normalized to sum 1: (n, classes). Classes beyond c get 0."""
    votes = mapped_zeros((len(losses), classes))
    for start in range(0, len(losses), BLOCK):
        part = losses[start : start + BLOCK]
        weight = np.exp(part.min(1, keepdims=True) - part)
        votes[start : start + BLOCK, : part.shape[1]] = weight / weight.sum(1, keepdims=True)
    return votes
