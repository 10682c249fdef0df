"""Weighted k-nearest-neighbor accuracy, as in Inst Disc: https://arxiv.org/abs/1805.01978. Each of the k most similar
training rows votes for its class with weight exp(s/τ). Nothing is selected on the test set: k depends on the number of
training rows, and the curve over other k is only shown."""

from dataclasses import dataclass

import numpy as np

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.base.score import wilson
from contrastive_core.metrics._base import PREDICTED, Metric, MetricResult, labels_of
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs, Neighbors, nearest

CURVE = (1, 2, 5, 10, 20, 50, 100, 200)
BLOCK = 1 << 22  # votes that are counted at a time
SHOWN = 100  # classes, above which the record leaves the confusion matrix out


def default_k(n_train: int) -> int:
    """Return the default k: 200 with at least 20,000 training rows, otherwise 20."""
    return 200 if n_train >= 20_000 else 20


@dataclass(frozen=True)
class Knn(Metric):
    title = N_("kNN accuracy")
    reading = N_(
        "Share of test samples that the most similar training samples classify correctly by vote. It needs no "
        "further training."
    )
    paper = "https://arxiv.org/abs/1805.01978"
    needs_labels = True
    needs_train = True
    most = 50_000  # test rows, as many as ImageNet's
    drawn = 10_000  # whose 95 % interval is at most two points wide
    k: int = knob(
        0, 0, 10_000, N_("number of neighbors that vote; 0: 200 with at least 20,000 training rows, otherwise 20")
    )
    temperature: float = knob(0.07, 0.001, 100, N_("τ of the vote's weight exp(s/τ)"), log=True)

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        assert train is not None
        truth = labels_of(test, self.title)
        train_labels = labels_of(train, self.title)
        if not (is_labeled := train_labels >= 0).all():
            train, train_labels = train.take(np.flatnonzero(is_labeled)), train_labels[is_labeled]
        k = self.k or default_k(len(train_labels))
        if k > len(train_labels):
            values = {"k": k, "train_labels": len(train_labels)}
            raise CannotScore("k is {k}, but there are only {train_labels} labeled training rows", **values)
        neighbors = graphs.get(test, train, min(max(k, CURVE[-1]), len(train_labels)))

        def by(k: int) -> np.ndarray:
            return vote(neighbors.first(k), train_labels, self.temperature)

        predicted, known = by(k), truth >= 0
        right = np.where(known, predicted == truth, np.nan)  # (n)
        n, hits = int(known.sum()), int(np.nansum(right))
        curve = {str(j): float((by(j) == truth)[known].mean()) for j in CURVE if j <= neighbors.k}
        classes = np.union1d(train_labels, truth[known])
        # Counted here: scikit-learn's import takes longer than the vote on a small set.
        cell = np.searchsorted(classes, truth[known]) * len(classes) + np.searchsorted(classes, predicted[known])
        table = np.bincount(cell, minlength=len(classes) ** 2).reshape(len(classes), -1)  # (c, c): true, predicted
        extras = {"k": k, "temperature": self.temperature, "n": n, **neighbors.about, "curve": curve}
        if len(classes) <= SHOWN:
            extras["per_class"] = per_class = []
            for i, (label, row) in enumerate(zip(classes, table.tolist(), strict=True)):
                m, one = sum(row), {"class": test.class_name(int(label)), "n": sum(row), "taken_for": row}
                per_class.append({**one, "value": row[i] / m, "interval": wilson(row[i], m)} if m else one)
        arrays = {PREDICTED: predicted, "confusion": table, "confusion_labels": classes}
        return MetricResult(hits / n, right, wilson(hits, n), "share", extras, arrays)


def leave_one_out(rows: EmbeddingSet, device: str = "auto") -> float | None:
    """Return the leave-one-out kNN accuracy of the labeled rows; None with fewer than two classes."""
    if rows.labels is None or len(np.unique(rows.labels[rows.labels >= 0])) < 2:
        return None
    labeled = rows.take(np.flatnonzero(rows.labels >= 0))
    assert labeled.labels is not None
    k = min(default_k(len(labeled)), len(labeled) - 1)
    neighbors = nearest(labeled.features, None, k, device=device)
    return float((vote(neighbors, labeled.labels, 0.07) == labeled.labels).mean())


def vote(neighbors: Neighbors, labels: np.ndarray, temperature: float) -> np.ndarray:
    """Return the classes (n) with the largest Σ exp(s/τ) over the neighbors; ties go to the smaller class."""
    classes, of = np.unique(labels, return_inverse=True)
    (n, k), c = neighbors.index.shape, len(classes)
    winner = np.empty(n, np.int64)
    step = max(1, BLOCK // max(c, k))
    for i in range(0, n, step):
        part = slice(i, i + step)
        s = neighbors.score[part].astype(np.float64)  # (r, k)
        weight = np.exp((s - s[:, :1]) / temperature)  # the nearest weighs 1: no overflow
        cell = np.arange(len(s))[:, None] * c + of[neighbors.index[part]]
        votes = np.bincount(cell.ravel(), weight.ravel(), len(s) * c).reshape(len(s), c)
        winner[part] = votes.argmax(1)
    return classes[winner]
