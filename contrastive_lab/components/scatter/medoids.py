"""Rows that stand for a map: the one at the middle of each of some forty crowds of its points."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int64

COUNT = 40
LOOKED_AT = 4_000  # points that the crowds are found among; more would be the same crowds
STARTS = 5  # before it is given up that no crowd is empty


def medoids(xy: Float[np.ndarray, "n 2"], count: int = COUNT) -> Int64[np.ndarray, " m"]:
    """Rows (m ≤ count) nearest to the centers of k-means on the map, of the largest crowd first.

    They are taken in the map's plane, since that is what they have to cover. A seed is fixed, so
    that a map always shows the same ones. By scipy, whose import costs 47 MB of memory where
    scikit-learn's costs 186.
    """
    at = np.flatnonzero(np.isfinite(xy).all(1))
    if len(at) > LOOKED_AT:
        at = np.sort(np.random.default_rng(0).choice(at, LOOKED_AT, replace=False))
    points, first = np.unique(np.asarray(xy[at], np.float64), axis=0, return_index=True)
    at = at[first]
    if len(at) <= count:
        return at.astype(np.int64)
    centers, sizes = _crowds(points, count)
    distances = ((points[:, None] - centers[None]) ** 2).sum(2)  # (n, count)
    nearest = distances.argmin(0)[np.argsort(-sizes, kind="stable")]
    kept = list(dict.fromkeys(nearest.tolist()))  # two centers may share a row
    return at[kept].astype(np.int64)


def _crowds(points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Centers (count, 2) of k-means, and how many points are nearest to each."""
    from scipy.cluster.vq import ClusterError, kmeans2

    for seed in range(STARTS):
        try:
            centers, group = kmeans2(points, count, minit="++", missing="raise", rng=seed)
        except ClusterError:  # a crowd without points
            continue
        return centers, np.bincount(group, minlength=count)
    rows = np.linspace(0, len(points) - 1, count).round().astype(np.int64)
    return points[rows], np.ones(count, np.int64)
