"""Rows that stand for a map: the one at the middle of each of some forty crowds of its points."""

from __future__ import annotations

import warnings

import numpy as np
from jaxtyping import Float, Int64

COUNT = 40
LOOKED_AT = 4_000  # points that the crowds are found among; more would be the same crowds


def medoids(xy: Float[np.ndarray, "n 2"], count: int = COUNT) -> Int64[np.ndarray, " m"]:
    """Rows (m ≤ count) nearest to the centers of k-means on the map, of the largest crowd first.

    They are taken in the map's plane, since that is what they have to cover. A seed is fixed, so that a map always
    shows the same ones. By scipy, whose import costs 47 MB of memory where scikit-learn's costs 186."""
    from scipy.cluster.vq import kmeans2

    at = np.flatnonzero(np.isfinite(xy).all(1))
    if len(at) > LOOKED_AT:
        at = np.sort(np.random.default_rng(0).choice(at, LOOKED_AT, replace=False))
    points, first = np.unique(np.asarray(xy[at], np.float64), axis=0, return_index=True)
    at = at[first]
    if len(at) <= count:
        return at.astype(np.int64)
    with warnings.catch_warnings(action="ignore"):  # a crowd may be left without points
        centers, group = kmeans2(points, count, minit="++", rng=0)
    sizes = np.bincount(group, minlength=count)
    distances = ((points[:, None] - centers[None]) ** 2).sum(2)  # (n, count)
    nearest = distances.argmin(0)[np.argsort(-sizes, kind="stable")]
    kept = list(dict.fromkeys(nearest.tolist()))  # two centers may share a row
    return at[kept].astype(np.int64)
