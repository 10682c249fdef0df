"""Which share of the true neighbors several searches found, and of their neighbors two spaces share."""

from collections.abc import Iterable

import numpy as np

BLOCK = 1024  # rows whose neighbors are compared at a time


def lowest_recall(recalls: Iterable[float | None]) -> float | None:
    """The lowest of some searches; None, as of an exact one, where all of them are exact."""
    return min((recall for recall in recalls if recall is not None), default=None)


def overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Share of the k neighbors (n, k) that two spaces have in common, per sample (n)."""
    return in_common(a, b).mean(1)


def in_common(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whether each neighbor of a (n, k) is one of b too (n, k)."""
    parts = (slice(start, start + BLOCK) for start in range(0, len(a), BLOCK))
    return np.concatenate([(a[part, :, None] == b[part, None]).any(2) for part in parts])  # of (r, k, k)
