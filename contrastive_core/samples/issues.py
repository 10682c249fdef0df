"""What may be wrong with samples: mislabeled, false negative, duplicate, outlier, ambiguous, hub.

Every score is higher where the suspicion is stronger:

- mislabeled: 1 − normalized margin (Northcutt et al. 2021, arXiv 1911.00068; 0 to 2). Three voters
  that have not seen the row's own label give each class a mean probability: the supervised
  contrastive loss under each class in turn (e^{−L}, see class_losses.py), the k nearest other rows,
  and an out-of-fold linear probe. The margin is the label's less the largest other.
- false_negative: cosine similarity to the nearest row that the loss would push away: any other
  one, or with pairs by class the nearest of another class.
- duplicate: how much nearer the nearest row of this or the other split is than the k-th of this
  one: 1 − d₁/d_k, d Euclidean on unit rows.
- outlier: mean distance to the k nearest rows (Ramaswamy et al. 2000, SIGMOD), in the embedding
  and in raw pixels, each as (x − median)/interquartile range; the larger counts. An encoder maps
  what it cannot read to one tight spot, so noise is no outlier in its own space: the pixels tell.
- ambiguous: normalized entropy of the out-of-fold probabilities over classes.
- hub: how often it is among the k nearest of others, over k (Radovanović et al. 2010, JMLR 11).

Measured by `benchmarks/planted_errors.py`. Average precision for 5 % flipped labels, mean of three
seeds, digits and shapes: neighbors and probe 0.985 and 0.934; the loss as the third voter 0.988
and 0.936 (its other form, a mean of logs: 0.982 and 0.931; as a rank beside those of the two, the
loss under the row's own label alone: 0.980 and 0.761; τ = 0.07 throughout), with the shipped
encoders of that day; RESULTS.md has the figures of the present ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.ops.neighbors import Neighbors, nearest_together
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.samples.class_losses import ByClass, by_class, class_votes

__all__ = ["Issues", "find_issues", "out_of_fold"]

FOLDS = 5
K = 20


@dataclass(frozen=True, eq=False)
class Issues:
    """A score per sample (n) for each list, and what explains it. NaN: no such score here."""

    scores: dict[str, np.ndarray]
    neighbors: Neighbors
    by_class: ByClass | None  # None without labels
    probabilities: np.ndarray | None  # (n, classes), out of fold
    knn_prediction: np.ndarray | None  # (n) class
    suggested: np.ndarray | None  # (n) the class, other than its own, that the voters prefer
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
    graph = nearest_together(rows.features, None, k, progress=lambda f: on_fraction(0.3 * f),
                             device=device)  # fmt: skip
    nearest_duplicate, leaked, apart = _duplicates(rows, other, graph, device)
    on_fraction(0.5)
    outlier = _outlyingness(graph, pixels, k, device)
    on_fraction(0.7)
    classes = None
    if rows.labels is not None and (rows.labels >= 0).any():
        classes = by_class(rows, on_fraction=lambda f: on_fraction(0.7 + 0.2 * f), device=device)
    negative = graph.score[:, 0].astype(np.float64)
    none = np.full(len(rows), np.nan)
    scores = {
        "mislabeled": none,
        "false_negative": classes.other_score if supervised and classes else negative,
        "duplicate": apart,
        "outlier": outlier,
        "ambiguous": none,
        "hub": np.bincount(graph.index.ravel(), minlength=len(rows)) / k,
    }
    p = knn_prediction = suggested = None
    if rows.labels is not None and classes and len(np.unique(rows.labels[rows.labels >= 0])) > 1:
        p = out_of_fold(rows, seed, device=device)
        votes = _votes(graph, rows.labels, p.shape[1])
        knn_prediction = votes.argmax(1)
        margin, suggested = _margin((p + votes + class_votes(classes.losses)) / 3, rows.labels)
        scores["mislabeled"] = np.where(rows.labels >= 0, 1 - margin, np.nan)
        entropy = -(p * np.log(np.maximum(p, 1e-12))).sum(1)
        scores["ambiguous"] = np.where(rows.labels >= 0, entropy / np.log(p.shape[1]), np.nan)
    on_fraction(1.0)
    return Issues(
        scores, graph, classes, p, knn_prediction, suggested, nearest_duplicate, leaked
    )  # fmt: skip


def out_of_fold(
    rows: EmbeddingSet, seed: int = 0, c: float = 10.0, device: str = "auto"
) -> np.ndarray:
    """Class probabilities (n, classes) of each row by a linear probe that has not seen it.

    The probe works on unit rows with strength C = 10. Rows without a label get the mean of all.
    """
    import torch

    from contrastive_core.distributed import collectives
    from contrastive_core.distributed.sharded_rows import SPREAD
    from contrastive_core.metrics.linear_probe import fit_logistic
    from contrastive_core.ops.neighbors import pick_device, unit_rows

    assert rows.labels is not None
    labeled, where = np.flatnonzero(rows.labels >= 0), pick_device(device)
    classes, y = np.unique(rows.labels[labeled], return_inverse=True)
    x = unit_rows(rows.features[labeled], where).double()
    target = torch.from_numpy(y).to(where)
    fold, p = _folds(y, seed), np.zeros((len(labeled), len(classes)))
    world = collectives.world()
    for f in np.unique(fold)[world.rank :: world.size]:
        at = (torch.from_numpy(np.flatnonzero(m)).to(where) for m in (fold != f, fold == f))
        train, test = at
        w = fit_logistic(x[train], target[train], len(classes), c, tolerance=1e-5)
        p[test.cpu().numpy()] = (x[test] @ w[:-1] + w[-1]).softmax(1).cpu().numpy()
    p = SPREAD.total(torch.from_numpy(p)).numpy()  # every fold is some process's
    full = np.zeros((len(rows), int(rows.labels.max()) + 1))
    full[:, classes] = p.mean(0)
    full[np.ix_(labeled, classes)] = p
    return full


def _folds(y: np.ndarray, seed: int) -> np.ndarray:
    """A fold for each row (n), every class spread evenly over all."""
    rng, fold = np.random.default_rng(seed), np.empty(len(y), np.int64)
    start = 0
    for label in np.unique(y):
        at = rng.permutation(np.flatnonzero(y == label))
        fold[at] = (start + np.arange(len(at))) % FOLDS
        start += len(at)
    return fold


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


def _votes(graph: Neighbors, labels: np.ndarray, classes: int) -> np.ndarray:
    """What the neighbors say (n, classes): votes of weight e^{s/0.07}, as in kNN, summing to 1."""
    weight = np.exp((graph.score - graph.score[:, :1]) / 0.07)  # (n, k)
    near = labels[graph.index]
    votes = np.stack([(weight * (near == c)).sum(1) for c in range(classes)], 1)
    return np.asarray(votes / np.maximum(votes.sum(1, keepdims=True), 1e-12))


def _margin(p: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probability of the own label less the largest other, and which that is; (n) each."""
    row, label = np.arange(len(p)), np.maximum(labels, 0)
    others = p.copy()
    others[row, label] = -1
    second = others.argmax(1)
    return p[row, label] - others[row, second], second
