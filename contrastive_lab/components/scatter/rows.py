"""Rows of a map: those that stand for it, and row numbers on their way between server and browser, as rows.js has them.

Many go as runs of neighbors or as one bit for each row, whichever is shorter: a lasso around half
of a million rows is 170 kB at most, where their numbers as text would be 3.5 MB."""

import base64
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

FEW = 500  # that go as a list


def pack_rows(rows: Sequence[int] | np.ndarray, n: int) -> dict[str, Any]:
    """Rows of n as plain values: a list in its order, or ascending `runs` (uint32 start, length) or `bits`."""
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
    """Row numbers as either side packed them; none where nothing was reported."""
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
