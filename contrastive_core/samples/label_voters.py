"""What class each row has by the others: five voters, none of which has seen the row's own label.

- loss: the supervised contrastive loss of the row under each class in turn, e^{−L}
  (class_losses.py).
- neighbors: the K nearest other rows, weighted e^{s/0.07} as in kNN.
- probe: a logistic regression on unit rows, strength C = 10, fitted without the row's fold.
- scaled_probe: likewise on standardized columns, C = 0.1: which of the two reads an encoder better
  differs from one to another.
- discriminant: Gaussian classes of one covariance (linear discriminant analysis), which is shrunk
  (Ledoit & Wolf 2004, J. Multivariate Analysis 88), likewise.

Each gives every row a probability per class, (n, classes), rows that sum to 1. They can be asked
to learn from some rows only; all rows are voted on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.ops.neighbors import Neighbors
from contrastive_core.samples.class_losses import ByClass, by_class, class_votes
from contrastive_core.samples.table import K

__all__ = [
    "VOTERS", "Votes", "discriminant", "folds", "out_of_fold", "vote", "votes_of_neighbors",
]  # fmt: skip

VOTERS = ("loss", "neighbors", "probe", "scaled_probe", "discriminant")
FOLDS = 5
C = 10.0  # strength of the probe
SCALED_C = 0.1  # of that on standardized columns

Classify = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # see `out_of_fold`


@dataclass(frozen=True, eq=False)
class Votes:
    """By voter, probabilities (n, classes) float64; and the loss of each row under each class."""

    by_voter: dict[str, np.ndarray]
    by_class: ByClass

    def mean(self) -> np.ndarray:
        """The voters' mean probability (n, classes)."""
        return np.asarray(np.mean(list(self.by_voter.values()), 0))


def vote(
    rows: EmbeddingSet,
    graph: Neighbors,
    learned: np.ndarray,
    seed: int = 0,
    device: str = "auto",
) -> Votes:
    """All voters on all rows. Of many processes (torchrun) each does a share of the work.

    Args:
        graph: the nearest other rows of each, more than K: not all of them may be learned from.
        learned: (n) bool, the rows whose labels the voters may use; −1 labels are never used.
    Raises: ValueError without labels.
    """
    assert rows.labels is not None
    labels = np.where(learned, rows.labels, -1)
    classes = int(rows.labels.max()) + 1
    losses = by_class(EmbeddingSet(rows.features, labels), device=device)
    x = rows.features / rows.lengths[:, None]
    return Votes(
        {
            "loss": _padded(class_votes(losses.losses), classes),
            "neighbors": votes_of_neighbors(graph, labels, classes),
            "probe": out_of_fold(x, labels, classes, _probe(device, C), seed),
            "scaled_probe": out_of_fold(
                rows.features, labels, classes, scaled(_probe(device, SCALED_C)), seed
            ),
            "discriminant": out_of_fold(x, labels, classes, discriminant, seed),
        },
        losses,
    )


def votes_of_neighbors(graph: Neighbors, labels: np.ndarray, classes: int) -> np.ndarray:
    """Votes (n, classes) of the K nearest rows with a label; all alike where there is none."""
    near = labels[graph.index]  # (n, k)
    counted = (near >= 0) & ((near >= 0).cumsum(1) <= K)
    weight = np.exp((graph.score - graph.score[:, :1]) / 0.07) * counted
    votes = np.stack([(weight * (near == c)).sum(1) for c in range(classes)], 1) + 1e-12
    return np.asarray(votes / votes.sum(1, keepdims=True))


def out_of_fold(
    x: np.ndarray, labels: np.ndarray, classes: int, classify: Classify, seed: int = 0
) -> np.ndarray:
    """Class probabilities (n, classes) of each row by a classifier that has not seen it.

    Args:
        x: (n, d). labels: (n), −1: not learned from.
        classify: of (m, d) rows, their labels 0 … classes' − 1 and (q, d) other rows, the
            probabilities (q, classes'). Of many processes each fits its share of the folds.
    """
    import torch

    from contrastive_core.distributed import collectives
    from contrastive_core.distributed.sharded_rows import SPREAD

    labeled, world = np.flatnonzero(labels >= 0), collectives.world()
    fold = np.arange(len(x)) % FOLDS  # of rows that nobody learns from
    fold[labeled] = folds(labels[labeled], seed)
    p = np.zeros((len(x), classes))
    for f in range(FOLDS)[world.rank :: world.size]:
        test = np.flatnonzero(fold == f)
        train = labeled[fold[labeled] != f]
        present, y = np.unique(labels[train], return_inverse=True)
        if len(test) and len(present) > 1:
            p[np.ix_(test, present)] = classify(x[train], y, x[test])
        elif len(test) and len(present):
            p[test, present[0]] = 1
    return np.asarray(SPREAD.total(torch.from_numpy(p)).numpy())  # every fold is some process's


def scaled(classify: Classify) -> Classify:
    """The same on columns of mean 0 and deviation 1 among the rows learned from (constant: 0)."""

    def on_scaled(x: np.ndarray, y: np.ndarray, other: np.ndarray) -> np.ndarray:
        x, other = x.astype(np.float64), other.astype(np.float64)
        mean, deviation = x.mean(0), x.std(0)
        scale = np.where(deviation > 1e-12 * (1 + np.abs(mean)), deviation, np.inf)
        return classify((x - mean) / scale, y, (other - mean) / scale)

    return on_scaled


def _probe(device: str, c: float) -> Classify:
    """Logistic regression, by the engine of the linear probe."""
    import torch

    from contrastive_core.metrics.linear_probe import fit_logistic
    from contrastive_core.ops.neighbors import pick_device

    where = pick_device(device)

    def classify(x: np.ndarray, y: np.ndarray, other: np.ndarray) -> np.ndarray:
        train, test = (torch.from_numpy(a).to(where).double() for a in (x, other))
        target = torch.from_numpy(y).to(where)
        w = fit_logistic(train, target, int(y.max()) + 1, c, tolerance=1e-5)
        return np.asarray((test @ w[:-1] + w[-1]).softmax(1).cpu().numpy())

    return classify


def discriminant(x: np.ndarray, y: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Linear discriminant analysis, its covariance shrunk (of all classes together, so that small
    classes cost nothing)."""
    from scipy.special import softmax
    from sklearn.covariance import ledoit_wolf

    x, other, counts = x.astype(np.float64), other.astype(np.float64), np.bincount(y)
    means = np.stack([x[y == c].mean(0) for c in range(len(counts))])
    covariance = ledoit_wolf(x - means[y], assume_centered=True)[0]
    ridge = 1e-6 * (np.trace(covariance) / len(covariance) + np.finfo(np.float64).tiny ** 0.25)
    solved = np.linalg.solve(covariance + ridge * np.eye(len(covariance)), means.T)  # (d, classes)
    logits = other @ solved - 0.5 * (means.T * solved).sum(0) + np.log(counts / len(y))
    return np.asarray(softmax(logits, axis=1))


def folds(y: np.ndarray, seed: int) -> np.ndarray:
    """A fold for each row (n), every class spread evenly over all, however few it has."""
    rng, fold = np.random.default_rng(seed), np.empty(len(y), np.int64)
    start = 0
    for label in np.unique(y):
        at = rng.permutation(np.flatnonzero(y == label))
        fold[at] = (start + np.arange(len(at))) % FOLDS
        start += len(at)
    return fold


def _padded(votes: np.ndarray, classes: int) -> np.ndarray:
    """Columns for the last classes, of which no row was learned from."""
    return np.pad(votes, ((0, 0), (0, classes - votes.shape[1])))
