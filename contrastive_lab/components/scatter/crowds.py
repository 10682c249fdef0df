"""Crowds on a map, areas where the points of one class are dense and the majority; and medoids, rows that cover it."""

import numpy as np
from jaxtyping import Float, Int64

SIDE = 40  # cells along the longer side of the map
MOST = 24  # names
LEAST = 0.01  # of all points, and
FEWEST = 5  # points that are a crowd
MAJORITY = 0.5  # of a crowd's points
NEIGHBORS = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b]


def crowds(xy: np.ndarray, labels: np.ndarray) -> list[tuple[int, int, float, int]]:
    """Return the crowds of the map's points (n, 2), the largest first: a row at the crowd's upper edge, the class,
    its share of all points in the crowd's cells, and the next class there (−1: none). Classes below 0 form no
    crowds."""
    span = float(np.ptp(xy, axis=0).max()) or 1.0
    cells = np.minimum(SIDE - 1, ((xy - xy.min(0)) / span * SIDE).astype(np.int64))
    number = cells[:, 0] * SIDE + cells[:, 1]
    total = np.bincount(number, minlength=SIDE * SIDE)
    found: list[tuple[int, int, int, float, int]] = []
    for label in np.unique(labels[labels >= 0]).tolist():
        own = np.flatnonzero(labels == label)
        counts = np.bincount(number[own], minlength=SIDE * SIDE)
        group = _groups(counts > 0)
        for one in range(1, int(group.max()) + 1):
            inside = group == one
            count, share = int(counts[inside].sum()), float(counts[inside].sum() / total[inside].sum())
            if count >= max(FEWEST, LEAST * len(xy)) and share > MAJORITY:
                others = labels[inside[number] & (labels >= 0) & (labels != label)]
                other = int(np.bincount(others).argmax()) if len(others) else -1
                rows = own[inside[number[own]]]
                high = rows[xy[rows, 1] >= np.quantile(xy[rows, 1], 0.8)]
                edge = int(high[np.abs(xy[high, 0] - np.median(xy[rows, 0])).argmin()])  # above the crowd's middle
                found.append((count, edge, label, share, other))
    found.sort(key=lambda crowd: -crowd[0])
    return [crowd[1:] for crowd in found[:MOST]]


def _groups(filled: np.ndarray) -> np.ndarray:
    """Return the number, from 1, of the connected group of each cell (SIDE²); 0 for an empty cell."""
    group, last = np.zeros(SIDE * SIDE, np.int64), 0
    for start in np.flatnonzero(filled).tolist():
        if group[start]:
            continue
        last += 1
        group[start], waiting = last, [start]
        while waiting:
            x, y = divmod(waiting.pop(), SIDE)
            for a, b in NEIGHBORS:
                at = (x + a) * SIDE + y + b
                if 0 <= x + a < SIDE and 0 <= y + b < SIDE and filled[at] and not group[at]:
                    group[at] = last
                    waiting.append(at)
    return group


# --- medoids -------------------------------------------------------------------------------------


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
