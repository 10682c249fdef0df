"""The class of each row by five voters that have not seen its label.

- loss: the supervised contrastive loss of the row under each class in turn, e^{−L} (class_losses.py).
- neighbors: the K nearest other rows, weighted e^{s/0.07} as in kNN.
- probe: a logistic regression on unit rows, strength C = 10, fitted without the row's fold.
- scaled_probe: likewise on standardized columns, C = 0.1: which of the two reads an encoder better
  differs from one to another.
- discriminant: Gaussian classes of one covariance (linear discriminant analysis), which is shrunk
  (Ledoit & Wolf 2004, J. Multivariate Analysis 88), likewise.

Each gives every row a probability per class, (n, classes), rows that sum to 1. They can be asked to learn from some
rows only; all rows are voted on.

The classifiers learn from `LEARNED` rows at most, drawn from the other folds; of sets twice as large two folds are
enough for that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import softmax
from sklearn.covariance import ledoit_wolf

from contrastive_core.device import pick_device
from contrastive_core.distributed import collectives
from contrastive_core.distributed.sharded_rows import SPREAD
from contrastive_core.metrics.linear_probe import Logistic
from contrastive_core.ops.neighbors import Neighbors
from contrastive_core.ops.sampling import rows_of_sample
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.sample_table import K
from contrastive_core.samples.class_losses import TEMPERATURE, ByClass, by_class, class_votes, sums_by_class
from contrastive_core.storage.large_arrays import mapped_zeros

VOTERS = ("loss", "neighbors", "probe", "scaled_probe", "discriminant")
FOLDS = 5
LEARNED = 50_000
BLOCK = 1 << 14  # rows that are voted on at a time
C = 10.0  # strength of the probe
SCALED_C = 0.1  # of that on standardized columns

Vote = Callable[[np.ndarray], np.ndarray]  # of rows (q, d) the probabilities (q, classes)
Fit = Callable[[np.ndarray, np.ndarray], Vote]  # to rows (m, d) and their labels, all of 0 … there
Change = Callable[[np.ndarray], np.ndarray]  # of rows (q, d)


@dataclass(frozen=True, eq=False)
class Votes:
    """By voter, probabilities (n, classes) float32; and the loss of each row under each class."""

    by_voter: dict[str, np.ndarray]
    by_class: ByClass

    def mean(self) -> np.ndarray:
        """The voters' mean probability (n, classes)."""
        return self.mixed(dict.fromkeys(self.by_voter, 1 / len(self.by_voter)))

    def mixed(self, weights: Mapping[str, float]) -> np.ndarray:
        """The voters' probability (n, classes) with these weights."""
        total = mapped_zeros(next(iter(self.by_voter.values())).shape)
        for start in range(0, len(total), BLOCK):
            part = slice(start, start + BLOCK)
            for name, weight in weights.items():
                total[part] += np.float32(weight) * self.by_voter[name][part]
        return total


def vote(rows: EmbeddingSet, graph: Neighbors, learned: np.ndarray, device: str = "auto") -> Votes:
    """All voters on all rows. Of many processes (torchrun) each does a share of the work. `graph`: the nearest other
    rows of each, more than K: not all of them may be learned from. `learned`: (n) bool, the rows whose labels the
    voters may use; −1 labels are never used."""
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
    """Votes (n, classes) of the K nearest rows with a label; all alike where there is none."""
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
    """Class probabilities (n, classes) float32 of each row by a classifier that has not seen it. `x`: (n, d). `labels`:
    (n), −1: not learned from. `fit`: learns from (m, d) rows and their labels 0 … classes' − 1. Of many processes each
    fits its share of the folds."""
    labeled, world = np.flatnonzero(labels >= 0), collectives.world()
    number = folds_of(len(labeled))
    fold = np.arange(len(x)) % number  # of rows that nobody learns from
    fold[labeled] = folds(labels[labeled], number)
    p = mapped_zeros((len(x), classes))
    for f in range(number)[world.rank :: world.size]:
        test = np.flatnonzero(fold == f)
        others = labeled[fold[labeled] != f]
        train = others[rows_of_sample(len(others), LEARNED)]
        present, y = np.unique(labels[train], return_inverse=True)
        vote = fit(x[train], y) if len(test) and len(present) > 1 else None
        for part in np.split(test, range(BLOCK, len(test), BLOCK)):
            if len(present):
                p[np.ix_(part, present)] = 1 if vote is None else vote(x[part])
    return np.asarray(SPREAD.total(torch.from_numpy(p)).numpy())  # every fold is some process's


def folds_of(n: int) -> int:
    """How many folds n rows to learn from make: two are enough where half of the rows are more than is learned from."""
    return 2 if n >= 2 * LEARNED else FOLDS


def folds(y: np.ndarray, number: int = FOLDS) -> np.ndarray:
    """A fold for each row (n), every class spread evenly over all, however few it has."""
    rng, fold = np.random.default_rng(0), np.empty(len(y), np.int64)
    start = 0
    for label in np.unique(y):
        at = rng.permutation(np.flatnonzero(y == label))
        fold[at] = (start + np.arange(len(at))) % number
        start += len(at)
    return fold


def _changed(change_for: Callable[[np.ndarray], Change], fit: Fit) -> Fit:
    """The same classifier on rows that are changed in the way that suits those learned from."""

    def fit_changed(x: np.ndarray, y: np.ndarray) -> Vote:
        change = change_for(x)
        vote = fit(change(x), y)
        return lambda other: vote(change(other))

    return fit_changed


def _unit(_: np.ndarray) -> Change:
    """To length 1."""
    return lambda x: x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)


def _standardized(x: np.ndarray) -> Change:
    """To columns of mean 0 and deviation 1 among the rows learned from (constant: 0)."""
    x = x.astype(np.float64)
    mean, deviation = x.mean(0), x.std(0)
    scale = np.where(deviation > 1e-12 * (1 + np.abs(mean)), deviation, np.inf)
    return lambda other: (other.astype(np.float64) - mean) / scale


def _probe(device: str, c: float) -> Fit:
    """Logistic regression, by the engine of the linear probe."""
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
    """Linear discriminant analysis, its covariance shrunk (of all classes together: small classes cost nothing)."""
    x, counts = x.astype(np.float64), np.bincount(y)
    means = np.stack([x[y == c].mean(0) for c in range(len(counts))])
    covariance = ledoit_wolf(x - means[y], assume_centered=True)[0]
    ridge = 1e-6 * (np.trace(covariance) / len(covariance) + np.finfo(np.float64).tiny ** 0.25)
    solved = np.linalg.solve(covariance + ridge * np.eye(len(covariance)), means.T)  # (d, classes)
    level = np.log(counts / len(y)) - 0.5 * (means.T * solved).sum(0)
    return lambda other: np.asarray(softmax(other.astype(np.float64) @ solved + level, axis=1))
