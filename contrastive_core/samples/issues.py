"""What may be wrong with samples: mislabeled, false negative, duplicate, outlier, ambiguous, hub.

Every score is higher where the suspicion is stronger:

- mislabeled: the probability that the label is wrong, by five voters that have not seen it
  (wrong_labels.py).
- false_negative: cosine similarity to the nearest row that the loss would push away: any other
  one, or with pairs by class the nearest of another class.
- duplicate: how much nearer the nearest row of this or the other split is than the k-th of this
  one: 1 − d₁/d_k, d Euclidean on unit rows.
- outlier: mean distance to the k nearest rows (Ramaswamy et al. 2000, SIGMOD), in the embedding
  and in raw pixels, each as (x − median)/interquartile range; the larger counts. An encoder maps
  what it cannot read to one tight spot, so noise is no outlier in its own space: the pixels tell.
- ambiguous: normalized entropy of the voters' probabilities over classes.
- hub: how often it is among the k nearest of others, over k (Radovanović et al. 2010, JMLR 11).

Measured by `benchmarks/planted_errors.py` and `benchmarks/label_errors.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.ops.neighbors import Neighbors, nearest_together
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.samples.class_losses import ByClass, by_class
from contrastive_core.samples.table import K
from contrastive_core.samples.wrong_labels import WrongLabels, find_wrong_labels

__all__ = ["Issues", "find_issues"]

WIDE = 3  # times the neighbors that vote: some of them may not


@dataclass(frozen=True, eq=False)
class Issues:
    """A score per sample (n) for each list, and what explains it. NaN: no such score here."""

    scores: dict[str, np.ndarray]
    neighbors: Neighbors
    by_class: ByClass | None  # None without labels
    labels: WrongLabels | None  # None with fewer than two classes
    nearest_duplicate: np.ndarray  # (n) row number, in the other split if `leaked`
    leaked: np.ndarray  # (n) bool: the nearest row lies in the other split


def find_issues(
    rows: EmbeddingSet,
    k: int = K,
    seed: int = 0,
    other: EmbeddingSet | None = None,
    pixels: np.ndarray | None = None,
    supervised: bool = False,
    on_fraction: OnFraction = ignore_fraction,
    device: str = "auto",
) -> Issues:
    """Scores of all rows. Of many processes (torchrun) each does a share of the work.

    Args:
        other: the other split, in the same space: where leaks are looked for.
        pixels: the images as rows (n, p), for outliers that the encoder does not see.
        supervised: only rows of another class are negatives.
        on_fraction: called with the fraction done; what it raises stops the work.
    Raises: UnusableEmbedding for fewer than two rows, or values that are not finite.
    """
    k = max(1, min(k, len(rows) - 1))
    wide = nearest_together(
        rows.features, None, min(WIDE * k, len(rows) - 1),
        progress=lambda f: on_fraction(0.3 * f), device=device,
    )  # fmt: skip
    graph = wide.first(k)
    nearest_duplicate, leaked, apart = _duplicates(rows, other, graph, device)
    on_fraction(0.5)
    outlier = _outlyingness(graph, pixels, k, device)
    on_fraction(0.6)
    wrong = classes = None
    labels = rows.labels if rows.labels is not None else np.zeros(0, np.int64)
    if len(np.unique(labels[labels >= 0])) > 1:
        wrong = find_wrong_labels(
            rows, wide, seed, device, lambda f: on_fraction(0.6 + 0.4 * f)
        )  # fmt: skip
        classes = wrong.by_class
    elif (labels >= 0).any():
        classes = by_class(rows, device=device)
    negative = graph.score[:, 0].astype(np.float64)
    none = np.full(len(rows), np.nan)
    scores = {
        "mislabeled": wrong.probability if wrong else none,
        "false_negative": classes.other_score if supervised and classes else negative,
        "duplicate": apart,
        "outlier": outlier,
        "ambiguous": _entropy(wrong.classes) if wrong else none,
        "hub": np.bincount(graph.index.ravel(), minlength=len(rows)) / k,
    }
    on_fraction(1.0)
    return Issues(scores, graph, classes, wrong, nearest_duplicate, leaked)


def _entropy(p: np.ndarray) -> np.ndarray:
    """Entropy (n) of probabilities (n, classes) over that of all classes alike."""
    return np.asarray(-(p * np.log(np.maximum(p, 1e-12))).sum(1) / np.log(p.shape[1]))


def _duplicates(
    rows: EmbeddingSet, other: EmbeddingSet | None, graph: Neighbors, device: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The nearest row of both splits, whether it is of the other, and 1 − d₁/d_k; (n) each."""
    nearest, score = graph.index[:, 0].copy(), graph.score[:, 0].copy()
    leaked = np.zeros(len(rows), bool)
    if other is not None:
        across = nearest_together(rows.features, other.features, 1, device=device)
        leaked = across.score[:, 0] > score
        nearest[leaked], score[leaked] = across.index[leaked, 0], across.score[leaked, 0]
    d_1, d_k = _distance(score), _distance(graph.score[:, -1])
    return nearest, leaked, 1 - d_1 / np.maximum(d_k, 1e-12)


def _outlyingness(graph: Neighbors, pixels: np.ndarray | None, k: int, device: str) -> np.ndarray:
    """The larger of the standardized mean distances, in the embedding and in pixels (n)."""
    embedded = _standard(1 - graph.score.mean(1, dtype=np.float64))
    if pixels is None:
        return embedded
    near = nearest_together(pixels, None, k, "euclidean", device=device)
    distance = near.score.mean(1, dtype=np.float64)
    return np.maximum(embedded, _standard(distance))


def _standard(x: np.ndarray) -> np.ndarray:
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
    return np.asarray((x - middle) / max(high - low, 1e-12))


def _distance(similarity: np.ndarray) -> np.ndarray:
    """Euclidean distance of unit rows from their cosine."""
    return np.sqrt(np.maximum(2 - 2 * similarity.astype(np.float64), 0))
