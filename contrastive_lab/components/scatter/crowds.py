"""Crowds on a map: areas where the points of one class are dense and the majority."""

import numpy as np

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
                found.append((count, _upper_edge(xy, own[inside[number[own]]]), label, share, other))
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


def _upper_edge(xy: np.ndarray, rows: np.ndarray) -> int:
    """Return one of these rows near the middle of the upper edge."""
    high = rows[xy[rows, 1] >= np.quantile(xy[rows, 1], 0.8)]
    return int(high[np.abs(xy[high, 0] - np.median(xy[rows, 0])).argmin()])
