"""Two to eight embedding spaces of the same samples: which is better, how alike they are, where.

Differences are paired. McNemar's exact test (1947, Psychometrika 12, 153) on kNN correctness gives
p values, Holm's step-down (1979, Scand. J. Stat. 6, 65) corrects them for their number; the 95 %
interval of a difference is a paired bootstrap. A difference is claimed only if its interval
excludes zero and its corrected p is below 0.05. CKA is the debiased linear one (Kornblith et al.
2019, arXiv 1905.00414; Nguyen et al. 2020, arXiv 2010.15327).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contrastive_core.embedding_set import EmbeddingSet

__all__ = [
    "Comparison",
    "Difference",
    "aligned",
    "cka",
    "common",
    "compare",
    "correctness",
    "difference",
    "overlap",
    "procrustes",
]

DRAWS = 2000
MOST = 8


@dataclass(frozen=True)
class Difference:
    """Accuracy of `a` less that of `b` on the same samples, with interval and p values."""

    a: str
    b: str
    value: float
    interval: tuple[float, float]
    p: float
    p_corrected: float
    only_a: int  # samples that a has right and b wrong
    only_b: int

    @property
    def claimed(self) -> bool:
        """Whether the data show a difference."""
        low, high = self.interval
        return (low > 0 or high < 0) and self.p_corrected < 0.05


@dataclass(frozen=True, eq=False)
class Comparison:
    """Everything that the Compare page draws. Matrices are (runs, runs)."""

    names: list[str]
    ids: tuple[str, ...]
    labels: np.ndarray | None
    right: np.ndarray | None  # (runs, n): kNN correctness
    accuracy: list[float]
    differences: list[Difference]
    cka: np.ndarray
    overlap: np.ndarray
    procrustes: np.ndarray
    k: int

    @property
    def verdict(self) -> str:
        """One sentence: the winner, the difference and its interval, or that there is none."""
        if self.right is None:
            return "Without labels no space is better than another; below is how alike they are."
        best = int(np.argmax(self.accuracy))
        own = [d for d in self.differences if self.names[best] in (d.a, d.b)]
        beaten = [d for d in own if d.claimed]
        if not beaten:
            return "No difference that these data can show."
        closest = min(own, key=lambda d: abs(d.value))
        shown = closest if closest.claimed else min(beaten, key=lambda d: abs(d.value))
        sign = 1 if shown.a == self.names[best] else -1
        low, high = sorted(100 * sign * v for v in shown.interval)
        other = shown.b if sign == 1 else shown.a
        text = (
            f"{self.names[best]} is better than {other} by {100 * sign * shown.value:.1f} points "
            f"of kNN accuracy (95 %: {low:.1f} to {high:.1f})."
        )
        if not closest.claimed:
            rest = closest.b if closest.a == self.names[best] else closest.a
            text += f" Between it and {rest} there is no difference that these data can show."
        return text


def common(sets: Sequence[EmbeddingSet]) -> list[EmbeddingSet]:
    """The sets, cut to the samples that all have, in the order of the first.

    Raises: ValueError for fewer than two or more than eight sets, or nothing in common.
    """
    if not 2 <= len(sets) <= MOST:
        raise ValueError(f"two to {MOST} runs can be compared; got {len(sets)}")
    shared = set.intersection(*(set(s.ids) for s in sets))
    if len(shared) < 2:
        raise ValueError("these runs have no samples in common: they are of different data sets")
    order = [i for i in sets[0].ids if i in shared]
    found = []
    for s in sets:
        at = {name: row for row, name in enumerate(s.ids)}
        found.append(s if s.ids == tuple(order) else s.take([at[i] for i in order]))
    return found


def compare(
    names: Sequence[str],
    train: Sequence[EmbeddingSet | None],
    test: Sequence[EmbeddingSet],
    k: int | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare spaces on their common test samples; `train` rows vote for the accuracies."""
    sets = common(test)
    labels = sets[0].labels
    right = None
    if labels is not None and all(t is not None and t.labels is not None for t in train):
        pairs = zip(train, sets, strict=True)
        right = np.stack([correctness(t, s, k) for t, s in pairs if t is not None])
    accuracy = [] if right is None else right.mean(1).tolist()
    differences = [] if right is None else _differences(names, right, seed)
    near = min(k or 20, len(sets[0]) - 1)
    features = [s.features for s in sets]
    return Comparison(
        list(names), sets[0].ids, labels, right, accuracy, differences,
        _matrix(features, cka), _overlaps(sets, near), _matrix(features, procrustes), near,
    )  # fmt: skip


def correctness(train: EmbeddingSet, test: EmbeddingSet, k: int | None = None) -> np.ndarray:
    """Whether weighted kNN (τ 0.07) gives each test row its own label (n) bool."""
    from contrastive_core.metrics.knn import default_k, vote
    from contrastive_core.neighbours import nearest

    assert train.labels is not None
    assert test.labels is not None
    k = min(k or default_k(len(train)), len(train))
    found = nearest(test.features, train.features, k)
    return np.asarray(vote(found, train.labels, 0.07) == test.labels)


def difference(a: np.ndarray, b: np.ndarray, seed: int = 0) -> tuple[float, tuple[float, float]]:
    """Mean of a − b over paired samples (n), with its 95 % bootstrap interval."""
    d = a.astype(np.float64) - b.astype(np.float64)
    counts = np.array([(d == v).sum() for v in (-1, 0, 1)])
    if counts.sum() == len(d):  # correctness: resample the three outcomes
        drawn = np.random.default_rng(seed).multinomial(len(d), counts / len(d), DRAWS)
        means = (drawn[:, 2] - drawn[:, 0]) / len(d)
    else:
        rng = np.random.default_rng(seed)
        means = np.array([d[rng.integers(0, len(d), len(d))].mean() for _ in range(DRAWS)])
    low, high = np.quantile(means, [0.025, 0.975])
    return float(d.mean()), (float(low), float(high))


def _differences(names: Sequence[str], right: np.ndarray, seed: int) -> list[Difference]:
    from scipy.stats import binomtest

    found = []
    for i, j in itertools.combinations(range(len(names)), 2):
        only_a, only_b = int((right[i] & ~right[j]).sum()), int((right[j] & ~right[i]).sum())
        n = only_a + only_b
        p = float(binomtest(only_a, n).pvalue) if n else 1.0
        value, interval = difference(right[i], right[j], seed)
        found.append(Difference(names[i], names[j], value, interval, p, p, only_a, only_b))
    return _holm(found)


def _holm(found: list[Difference]) -> list[Difference]:
    corrected, so_far = {}, 0.0
    order = sorted(range(len(found)), key=lambda q: found[q].p)
    for rank, q in enumerate(order):
        so_far = max(so_far, min(1.0, found[q].p * (len(found) - rank)))
        corrected[q] = so_far
    return [
        Difference(d.a, d.b, d.value, d.interval, d.p, corrected[q], d.only_a, d.only_b)
        for q, d in enumerate(found)
    ]


# --- how alike ---------------------------------------------------------------------------------


def cka(x: np.ndarray, y: np.ndarray) -> float:
    """Debiased linear CKA of two embeddings (n, d), (n, e) of the same samples; n at least 4."""
    n = len(x)
    if n < 4:
        return float("nan")
    x, y = (_centred(v) for v in (x, y))
    rows_x, rows_y = np.einsum("nd,nd->n", x, x), np.einsum("nd,nd->n", y, y)

    def hsic(a: np.ndarray, b: np.ndarray, ra: np.ndarray, rb: np.ndarray) -> float:
        cross = a.T @ b
        return float(
            (cross * cross).sum()
            - n / (n - 2) * (ra @ rb)
            + ra.sum() * rb.sum() / ((n - 1) * (n - 2))
        )

    xy, xx, yy = hsic(x, y, rows_x, rows_y), hsic(x, x, rows_x, rows_x), hsic(y, y, rows_y, rows_y)
    return xy / np.sqrt(xx * yy) if xx > 0 and yy > 0 else float("nan")


def procrustes(x: np.ndarray, y: np.ndarray) -> float:
    """Procrustes distance, 0 (alike up to turn, mirror and scale) to 1."""
    x, y = (_scaled(v) for v in (x, y))
    width = max(x.shape[1], y.shape[1])
    x, y = (np.pad(v, ((0, 0), (0, width - v.shape[1]))) for v in (x, y))
    shared = np.linalg.svd(x.T @ y, compute_uv=False).sum()
    return float(max(0.0, 1 - shared**2))


def aligned(moving: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """A map (n, 2) turned, mirrored, scaled and shifted onto another."""
    x, y = moving - moving.mean(0), fixed - fixed.mean(0)
    u, s, v = np.linalg.svd(x.T @ y)
    scale = s.sum() / max(1e-12, (x * x).sum())
    return np.asarray(scale * x @ (u @ v) + fixed.mean(0), np.float32)


def overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Share of the k neighbours (n, k) that two spaces have in common, per sample (n)."""
    hits = [len(np.intersect1d(x, y, assume_unique=True)) for x, y in zip(a, b, strict=True)]
    return np.array(hits) / a.shape[1]


def _overlaps(sets: Sequence[EmbeddingSet], k: int) -> np.ndarray:
    from contrastive_core.neighbours import nearest

    graphs = [nearest(s.features, None, k).index for s in sets]
    return _matrix(graphs, lambda a, b: float(overlap(a, b).mean()))


def _matrix(parts: Sequence[np.ndarray], of: Any) -> np.ndarray:
    found = np.eye(len(parts))
    for i in range(len(parts)):
        for j in range(i + 1):
            found[i, j] = found[j, i] = of(parts[i], parts[j])
    return found


def _centred(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    return x - x.mean(0)


def _scaled(x: np.ndarray) -> np.ndarray:
    x = _centred(x)
    return x / max(1e-300, float(np.sqrt((x * x).sum())))
