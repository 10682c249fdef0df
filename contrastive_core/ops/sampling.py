"""What is said beside a figure of some rows, or of approximate neighbors: a sample, the same at every call; and the
share of the true neighbors that a search found, or that two spaces have in common. Torch-free."""

from collections.abc import Iterable

import numpy as np

BLOCK = 1024  # rows whose neighbors are compared at a time


def rows_of_sample(n: int, most: int, seed: int = 0) -> np.ndarray:
    """Numbers (m) of at most `most` of n rows, rising: all of them, or drawn without return."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))


def sample_text(count: int, n: int, what: str = "rows") -> str:
    """How many of how many, "1,000 of 50,000 rows"; "" where none was left out."""
    return f"{count:,} of {n:,} {what}" if count < n else ""


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
