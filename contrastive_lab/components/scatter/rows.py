"""Rows of a map: representative rows, and the transfer of row numbers between server and browser in the format of
rows.js.

Many rows are sent as runs of consecutive numbers or as one bit per row, whichever is shorter: a lasso around half of a
million rows takes at most 170 kB, where numbers as text would take 3.5 MB."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

FEW = 500  # that go as a list


def pack_rows(rows: Sequence[int] | np.ndarray, n: int) -> dict[str, Any]:
    """Return rows of n as plain values: an ordered list, or ascending `runs` (uint32 start, length) or `bits`."""
    if len(rows) <= FEW:
        return {"rows": [int(i) for i in rows]}
    ascending = np.unique(np.asarray(rows, np.int64))
    first = np.flatnonzero(np.diff(ascending, prepend=-2) != 1)
    if 8 * len(first) < n / 8:
        lengths = np.diff(first, append=len(ascending))
        runs = np.stack([ascending[first], lengths], 1).astype("<u4")
        return {"runs": base64.b64encode(runs.tobytes()).decode()}
    flags = np.zeros(n, np.uint8)
    flags[ascending] = 1
    return {"bits": base64.b64encode(np.packbits(flags, bitorder="little").tobytes()).decode()}


def rows_of(packed: dict[str, Any] | None) -> Int64[np.ndarray, " m"]:
    """Unpack row numbers from either side; empty without a report."""
    packed = packed or {}
    if "runs" in packed:
        runs = np.frombuffer(base64.b64decode(packed["runs"]), "<u4").astype(np.int64)
        starts, lengths = runs[::2], runs[1::2]
        before = np.cumsum(lengths) - lengths
        return np.repeat(starts - before, lengths) + np.arange(lengths.sum())
    if "bits" in packed:
        bits = np.frombuffer(base64.b64decode(packed["bits"]), np.uint8)
        return np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.int64)
    return np.asarray(packed.get("rows", []), np.int64)


COUNT = 40
LOOKED_AT = 4_000  # points that the crowds are found among; more would be the same crowds


def medoids(
    xy: Float[np.ndarray, "n 2"], count: int = COUNT, labels: np.ndarray | None = None
) -> Int64[np.ndarray, " m"]:
    """Return the rows (m ≤ count) nearest to the centers of k-means on the map, that of the largest cluster first.
    With labels (n), each is of its cluster's most frequent class.

    The clusters are in the map's plane, because the rows must cover it. The seed is fixed, so a map always has the same
    ones."""
    at = np.flatnonzero(np.isfinite(xy).all(1))
    if len(at) > LOOKED_AT:
        at = np.sort(np.random.default_rng(0).choice(at, LOOKED_AT, replace=False))
    points, first = np.unique(np.asarray(xy[at], np.float64), axis=0, return_index=True)
    at = at[first]
    if len(at) <= count:
        return at.astype(np.int64)
    centers = _centers(points, count)
    distances = _squared(points, centers)  # (n, count)
    group = distances.argmin(1)
    sizes = np.bincount(group, minlength=count)
    if labels is not None:
        own = labels[at] - min(labels[at].min(), 0)
        frequent = [np.bincount(own[group == c], minlength=1).argmax() for c in range(count)]
        distances[own[:, None] != frequent] = np.inf
    nearest = distances.argmin(0)[np.argsort(-sizes, kind="stable")]
    kept = list(dict.fromkeys(nearest.tolist()))  # two centers may share a row
    return at[kept].astype(np.int64)


def _centers(points: Float[np.ndarray, "n 2"], count: int) -> Float[np.ndarray, "count 2"]:
    """Return centers of k-means: starts by k-means++ (Arthur & Vassilvitskii 2007), then Lloyd's iteration.

    The first page needs them, and the import of scipy's costs it 40 MB and half a second, scikit-learn's 186 MB."""
    draw = np.random.default_rng(0)
    centers = points[[draw.integers(len(points))]]
    while len(centers) < count:
        away = _squared(points, centers).min(1)
        centers = np.append(centers, points[[draw.choice(len(points), p=away / away.sum())]], axis=0)
    for _ in range(10):
        group = _squared(points, centers).argmin(1)
        size = np.bincount(group, minlength=count)
        sums = np.stack([np.bincount(group, x, minlength=count) for x in points.T], 1)
        centers = np.where(size[:, None] > 0, sums / np.maximum(size, 1)[:, None], centers)
    return centers


def _squared(points: Float[np.ndarray, "n 2"], centers: Float[np.ndarray, "k 2"]) -> Float[np.ndarray, "n k"]:
    return ((points[:, None] - centers[None]) ** 2).sum(2)
