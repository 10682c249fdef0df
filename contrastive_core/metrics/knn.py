"""Weighted k-nearest-neighbour accuracy, as Inst Disc votes: https://arxiv.org/abs/1805.01978.

Each of the k most similar training rows votes for its class with weight exp(s/τ). Nothing is
selected on the test set: k follows from the number of training rows, and the curve over other k
is for reading only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contrastive_core.embedding_set import EmbeddingSet
from contrastive_core.metrics._base import CannotScore, Metric, MetricResult, labels_of, wilson
from contrastive_core.neighbours import Graphs, Neighbours
from contrastive_core.registry import knob

__all__ = ["Knn", "default_k", "vote"]

CURVE = (1, 2, 5, 10, 20, 50, 100, 200)


def default_k(n_train: int) -> int:
    """200 from 20,000 training rows up, 20 below."""
    return 200 if n_train >= 20_000 else 20


@dataclass(frozen=True)
class Knn(Metric):
    title = "kNN accuracy"
    reading = (
        "Share of test samples whose class the most similar training samples vote for; "
        "what the embedding gives without any training on top."
    )
    paper = "https://arxiv.org/abs/1805.01978"
    needs_labels = True
    needs_train = True

    k: int = knob(0, 0, 10_000, "neighbours that vote; 0: 200 from 20,000 training rows, else 20")
    temperature: float = knob(0.07, 0.001, 100, "τ of the vote's weight exp(s/τ)", log=True)

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        assert train is not None
        truth, known = labels_of(test, self.title), labels_of(train, self.title)
        train = train.take(np.flatnonzero(known >= 0)) if (known < 0).any() else train
        assert train.labels is not None
        k = self.k or default_k(len(train))
        if k > len(train):
            raise CannotScore(f"k is {k}, but there are only {len(train)} labelled training rows")
        found = graphs.get(test, train, min(max(k, CURVE[-1]), len(train)))
        predicted = vote(found.first(k), train.labels, self.temperature)
        right = np.where(truth >= 0, predicted == truth, np.nan)  # (n)
        n, hits = int((truth >= 0).sum()), int(np.nansum(right))
        curve = [j for j in CURVE if j <= found.k]
        shares = [
            float(
                (vote(found.first(j), train.labels, self.temperature) == truth)[truth >= 0].mean()
            )
            for j in curve
        ]
        return MetricResult(
            hits / n,
            per_sample=right,
            interval=wilson(hits, n),
            unit="share",
            extras={"k": k, "temperature": self.temperature, "n": n},
            arrays={
                "predicted": predicted,
                "curve_k": np.array(curve),
                "curve": np.array(shares),
            },
        )


def vote(found: Neighbours, labels: np.ndarray, temperature: float) -> np.ndarray:
    """The class (n) with the largest Σ exp(s/τ) over the neighbours; ties go to the smaller."""
    classes, of = np.unique(labels, return_inverse=True)
    s = found.score.astype(np.float64)  # (n, k)
    weight = np.exp((s - s[:, :1]) / temperature)  # the nearest weighs 1: no overflow
    n, c = len(s), len(classes)
    cell = np.arange(n)[:, None] * c + of[found.index]
    votes = np.bincount(cell.ravel(), weight.ravel(), n * c).reshape(n, c)
    return classes[votes.argmax(1)]
