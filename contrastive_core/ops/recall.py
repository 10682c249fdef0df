"""Which share of the true neighbors several searches found, and of their neighbors two spaces share."""

from collections.abc import Iterable

import numpy as np

BLOCK = 1024  # rows whose neighbors are compared at a time


def lowest_recall(recalls: Iterable[float | None]) -> float | None:
    """The lowest of some searches; None, as of an exact one, where all of them are exact."""
    return min((recall for recall in recalls if recall is not None), default=None)


def overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Share of the k neighbors (n, k) that two spaces have in common, per sample (n)."""
    shares = np.empty(len(a))
    for start in range(0, len(a), BLOCK):
        part = slice(start, start + BLOCK)
        shares[part] = (a[part, :, None] == b[part, None]).any(2).mean(1)  # of (r, k, k)
    return shares
