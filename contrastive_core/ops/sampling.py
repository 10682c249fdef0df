"""A stated sample of rows, the same at every call: what is drawn above a size is said beside the
figure that comes of it."""

import numpy as np


def rows_of_sample(n: int, most: int, seed: int = 0) -> np.ndarray:
    """Numbers (m) of at most `most` of n rows, rising: all of them, or drawn without return."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))


def sample_text(count: int, n: int, what: str = "rows") -> str:
    """How many of how many, "1,000 of 50,000 rows"; "" where none was left out."""
    return f"{count:,} of {n:,} {what}" if count < n else ""
