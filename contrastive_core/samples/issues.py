"""Issues of samples: mislabeled, false negative, duplicate, outlier, ambiguous, hub.

Every score is higher where the suspicion is stronger:

- mislabeled: the probability that the label is wrong, by five voters that have not seen it
  (label_errors.py).
- false_negative: cosine similarity to the nearest row that the loss would push away: any other
  one, or with pairs by class the nearest of another class.
- duplicate: how much nearer the nearest row of this or the other split is than the k-th of this
  one, 1 − d₁/d_k, d Euclidean on unit rows: in the embedding and in centered pixels.
- outlier: log of the mean distance to the k nearest rows (Ramaswamy et al. 2000, SIGMOD), cosine,
  in the embedding and in centered pixels. An encoder maps what it cannot read to one tight spot,
  so noise is no outlier in its own space: the pixels tell.
- ambiguous: normalized entropy of the voters' probabilities over classes.
- hub: how often it is among the k nearest of others, over k (Radovanović et al. 2010, JMLR 11).

Of the two spaces of duplicate and outlier the larger (x − median)/interquartile range counts, so that a space in which
these numbers vary much anyway does not hide a clear sign of the other.

Above `neighbors.APPROXIMATE_FROM` the nearest rows are looked for among some likely ones (candidates.py), and the share
that is found is told; a score is of what was found.

Measured by `benchmarks/planted_errors.py` and `benchmarks/label_errors.py`.
"""

from dataclasses import dataclass

import numpy as np

from contrastive_core.ops.neighbors import Neighbors, nearest_together
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.sample_table import K
from contrastive_core.records.towers import towers_of
from contrastive_core.samples.candidates import LIKELY
from contrastive_core.samples.class_losses import ByClass, by_class
from contrastive_core.samples.label_errors import LabelErrors, find_label_errors

__all__ = ["Issues", "find_issues"]

BLOCK = 4096  # rows whose distances are taken at a time
OF_NEAREST = ("false_negative", "duplicate")  # not of two towers: partners are near; tower_pairs.py has their lists
WIDE = 3  # times the neighbors that vote: some of them may not


@dataclass(frozen=True, eq=False)
class Issues:
    """A score per sample (n) for each list, and what explains it. NaN: no such score here."""

    scores: dict[str, np.ndarray]
    neighbors: Neighbors
    by_class: ByClass | None  # None without labels
    labels: LabelErrors | None  # None with fewer than two classes
    nearest_duplicate: np.ndarray  # (n) row number, in the other split if `leaked`
    leaked: np.ndarray  # (n) bool: the nearest row lies in the other split
    nearness: np.ndarray  # (n) 1 − d₁/d_k to it; 1: a copy

    @property
    def nearest_positive(self) -> np.ndarray:
        """The nearest row (n) of the same label, −1: none."""
        return np.full(len(self.leaked), -1) if self.by_class is None else self.by_class.same

    @property
    def nearest_negative(self) -> np.ndarray:
        """The nearest row (n) of another label, −1: none; without labels all others are negatives."""
        return self.neighbors.index[:, 0] if self.by_class is None else self.by_class.other


Pixels = tuple[np.ndarray, np.ndarray | None]  # images as rows (n, p), of this split and of the other


def find_issues(
    rows: EmbeddingSet,
    other: EmbeddingSet | None = None,
    pixels: Pixels | None = None,
    supervised: bool = False,
    near: Neighbors | None = None,
    device: str = "auto",
    on_fraction: OnFraction = ignore_fraction,
) -> Issues:
    """Scores of all rows. Of many processes (torchrun) each does a share of the work.

    Args:
        other: the other split, in the same space: where leaks are looked for.
        pixels: for copies and outliers that the encoder does not see.
        supervised: only rows of another class are negatives.
        near: the nearest rows, where these are known.
        on_fraction: called with the fraction done; what it raises stops the work.
    Raises: UnusableEmbedding for fewer than two rows, or values that are not finite.
    """
    most = min(WIDE * (k := max(1, min(K, len(rows) - 1))), len(rows) - 1)
    wide = _known(near, most) or _nearest(rows.features, None, most, device, lambda f: on_fraction(0.3 * f))
    graph = wide.first(k)
    on_fraction(0.4)
    spaces = [_Space(rows.features, other.features if other else None, graph)]
    spaces += [] if pixels is None else [_pixel_space(*pixels, k, device)]
    nearest_duplicate, leaked, nearness, duplicate = _duplicates(spaces, device)
    on_fraction(0.6)
    wrong, classes = _by_labels(rows, wide, device, lambda f: on_fraction(0.6 + 0.4 * f))
    negative, none = graph.score[:, 0].astype(np.float64), np.full(len(rows), np.nan)
    scores = {
        "mislabeled": wrong.probability if wrong else none,
        "false_negative": classes.other_score if supervised and classes else negative,
        "duplicate": duplicate,
        "outlier": np.max([_outlyingness(space.graph) for space in spaces], 0),
        "ambiguous": _entropy(wrong.classes) if wrong else none,
        "hub": np.bincount(graph.index.ravel(), minlength=len(rows)) / k,
    }
    scores |= dict.fromkeys(OF_NEAREST if towers_of(rows) else (), none)
    on_fraction(1.0)
    return Issues(scores, graph, classes, wrong, nearest_duplicate, leaked, nearness)


def _known(near: Neighbors | None, k: int) -> Neighbors | None:
    """The k nearest of the neighbors that somebody has, if these serve here."""
    return near.first(k) if near is not None and near.metric == "cosine" and near.k >= k else None


def _by_labels(
    rows: EmbeddingSet, wide: Neighbors, device: str, on_fraction: OnFraction
) -> tuple[LabelErrors | None, ByClass | None]:
    """Return the label errors; none without labels or with one class."""
    labels = rows.labels if rows.labels is not None else np.zeros(0, np.int64)
    if len(np.unique(labels[labels >= 0])) > 1:
        wrong = find_label_errors(rows, wide, device, on_fraction)
        return wrong, wrong.by_class
    return None, by_class(rows, device, None if wide.recall is None else wide) if (labels >= 0).any() else None


def _nearest(
    x: np.ndarray, base: np.ndarray | None, k: int, device: str, on_fraction: OnFraction = ignore_fraction
) -> Neighbors:
    return nearest_together(x, base, k, "cosine", on_fraction, device, LIKELY)


@dataclass(frozen=True, eq=False)
class _Space:
    """Rows of this split and of the other (if there is one), and the k nearest of this split."""

    x: np.ndarray
    other: np.ndarray | None
    graph: Neighbors


def _pixel_space(x: np.ndarray, other: np.ndarray | None, k: int, device: str) -> _Space:
    """Pixels, centered: cosines do not change when an image is made brighter or flatter."""
    x = x - x.mean(1, keepdims=True)
    other = None if other is None else other - other.mean(1, keepdims=True)
    return _Space(x, other, _nearest(x, None, k, device))


def _duplicates(spaces: list[_Space], device: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The nearest row of both splits, whether it is of the other, 1 − d₁/d_k, and the score; (n) each, of the space in
    which the score is larger."""
    found = []
    for space in spaces:
        nearest = space.graph.index[:, 0].copy()
        first, last = (_distances(space.x, space.x, space.graph.index[:, q]) for q in (0, -1))
        leaked = np.zeros(len(nearest), bool)
        if space.other is not None:
            far = _nearest(space.x, space.other, 1, device).index[:, 0]
            across = _distances(space.x, space.other, far)
            leaked = across < first
            nearest[leaked], first[leaked] = far[leaked], across[leaked]
        nearness = 1 - first / np.maximum(last, 1e-12)
        found.append((nearest, leaked, nearness, _standard(nearness)))
    which = np.argmax([standard for *_, standard in found], 0)
    nearest, leaked, nearness, standard = (np.choose(which, c) for c in zip(*found, strict=True))
    return nearest, leaked, nearness, standard


def _distances(x: np.ndarray, y: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Distance (n) of each row of x to its row of y, on the sphere; in float64, since a float32 cosine says nothing of
    copies nearer than 3e-4."""
    distance = np.empty(len(x))
    for start in range(0, len(x), BLOCK):
        part = slice(start, start + BLOCK)
        distance[part] = np.linalg.norm(_unit(x[part]) - _unit(y[index[part]]), axis=1)
    return distance


def _unit(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    return np.asarray(wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-300))


def _entropy(p: np.ndarray) -> np.ndarray:
    """Entropy (n) of probabilities (n, classes) over that of all classes alike."""
    parts = [p[start : start + BLOCK] for start in range(0, len(p), BLOCK)]
    sums = [-(q * np.log(np.maximum(q, 1e-12))).sum(1, dtype=np.float64) for q in parts]
    return np.concatenate(sums) / np.log(p.shape[1])


def _outlyingness(graph: Neighbors) -> np.ndarray:
    """How far rows (n) are from their neighbors, standardized."""
    distance = 1 - graph.score.mean(1, dtype=np.float64)
    least = max(1e-3 * float(np.median(distance)), 1e-12)  # copies: their logarithm is no matter
    return _standard(np.log(np.maximum(distance, least)))


def _standard(x: np.ndarray) -> np.ndarray:
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
    return np.asarray((x - middle) / max(high - low, 1e-12))
