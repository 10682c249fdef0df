"""What may be wrong with samples: mislabelled, false negative, duplicate, outlier, ambiguous.

Every score is higher where the suspicion is stronger:

- mislabelled: mean of two established scores, as ranks: one minus the out-of-fold probability of
  the given label (self-confidence; Northcutt et al. 2021, arXiv 1911.00068) and the share of the
  k nearest other rows, weighted as kNN votes, that have another label.
- false_negative: cosine similarity to the nearest row that a self-supervised loss would push away.
- duplicate: how much nearer the nearest row is than the k-th: 1 − d₁/d_k, d Euclidean on unit rows.
- outlier: mean distance to the k nearest rows (Ramaswamy et al. 2000, SIGMOD).
- ambiguous: normalised entropy of the out-of-fold probabilities over classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contrastive_core.embedding_set import EmbeddingSet
from contrastive_core.neighbours import Neighbours, nearest

__all__ = ["LISTS", "Findings", "find", "out_of_fold"]

FOLDS = 5
K = 20
LISTS = {
    "mislabelled": "Likely mislabelled: neighbours and an out-of-fold probe disagree",
    "false_negative": "Likely false negatives: pushed apart, though they look the same",
    "duplicate": "Near-duplicates: much nearer to one row than rows here usually are",
    "outlier": "Outliers: far from everything",
    "ambiguous": "Ambiguous between two classes",
}


@dataclass(frozen=True, eq=False)
class Findings:
    """A score per sample (n) for each list, and what explains it. NaN: no such score here."""

    scores: dict[str, np.ndarray]
    neighbours: Neighbours
    probabilities: np.ndarray | None  # (n, classes), out of fold
    second: np.ndarray | None  # (n) the class it is most confused with


def find(rows: EmbeddingSet, k: int = K, seed: int = 0) -> Findings:
    """Scores of all rows. Raises: UnusableEmbedding for fewer than three rows, or NaN."""
    k = max(1, min(k, len(rows) - 1))
    graph = nearest(rows.features, None, k)
    none = np.full(len(rows), np.nan)
    scores = {
        "mislabelled": none,
        "false_negative": graph.score[:, 0].astype(np.float64),
        "duplicate": _alone_with(graph),
        "outlier": 1 - graph.score.mean(1, dtype=np.float64),
        "ambiguous": none,
    }
    p = second = None
    if rows.labels is not None and len(np.unique(rows.labels[rows.labels >= 0])) > 1:
        p = out_of_fold(rows, seed)
        known = rows.labels >= 0
        own = np.where(known, p[np.arange(len(rows)), np.maximum(rows.labels, 0)], np.nan)
        disagree = _disagreement(graph, rows.labels)
        scores["mislabelled"] = (_rank(1 - own) + _rank(disagree)) / 2
        entropy = -(p * np.log(np.maximum(p, 1e-12))).sum(1)
        scores["ambiguous"] = entropy / np.log(p.shape[1])
        others = p.copy()
        others[np.arange(len(rows)), np.maximum(rows.labels, 0)] = -1
        second = others.argmax(1)
    return Findings(scores, graph, p, second)


def out_of_fold(rows: EmbeddingSet, seed: int = 0) -> np.ndarray:
    """Class probabilities (n, classes) of each row by a linear probe that has not seen it."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold

    assert rows.labels is not None
    x = rows.features / np.maximum(np.linalg.norm(rows.features, axis=1, keepdims=True), 1e-12)
    known = np.flatnonzero(rows.labels >= 0)
    classes = int(rows.labels.max()) + 1
    p = np.zeros((len(rows), classes))
    least = np.unique(rows.labels[known], return_counts=True)[1].min()
    folds = StratifiedKFold(max(2, min(FOLDS, int(least))), shuffle=True, random_state=seed)
    for train, test in folds.split(x[known], rows.labels[known]):
        model = LogisticRegression(C=10.0, max_iter=300)
        model.fit(x[known[train]], rows.labels[known[train]])
        p[np.ix_(known[test], model.classes_)] = model.predict_proba(x[known[test]])
    return p


def _alone_with(graph: Neighbours) -> np.ndarray:
    """1 − d₁/d_k on unit rows (n): near 1 where one row is far nearer than the others."""
    d = np.sqrt(np.maximum(2 - 2 * graph.score.astype(np.float64), 0))  # (n, k)
    return np.asarray(1 - d[:, 0] / np.maximum(d[:, -1], 1e-12))


def _disagreement(graph: Neighbours, labels: np.ndarray) -> np.ndarray:
    """Share of the neighbours' vote (weights e^{s/0.07}) for another label than the own (n)."""
    weight = np.exp((graph.score - graph.score[:, :1]) / 0.07)  # (n, k)
    other = labels[graph.index] != labels[:, None]
    return np.asarray((weight * other).sum(1) / weight.sum(1))


def _rank(x: np.ndarray) -> np.ndarray:
    """Ranks scaled to 0..1, ties shared; NaN stays."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(x, nan_policy="omit") / max(1, np.isfinite(x).sum()))
