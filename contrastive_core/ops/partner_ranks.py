"""Ranks of partners between two towers. Similarities are held a block at a time, so memory stays bounded for 100,000
pairs."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float, Int, Int64

BLOCK = 1 << 24  # similarities that are held together


def similarity_blocks(
    queries: Float[np.ndarray, "q d"],
    others: Float[np.ndarray, "m d"],
    group: Int[np.ndarray, " q"],
    other_group: Int[np.ndarray, " m"],
    block: int = BLOCK,
) -> Iterator[tuple[slice, Float[np.ndarray, "r m"], Bool[np.ndarray, "r m"]]]:
    """Yield, of some queries at a time, which they are, their products with the others, and which are partners."""
    step = max(1, block // len(others))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        yield part, queries[part] @ others.T, group[part, None] == other_group[None]


def partner_ranks(
    queries: Float[np.ndarray, "q d"],
    others: Float[np.ndarray, "m d"],
    group: Int[np.ndarray, " q"],
    other_group: Int[np.ndarray, " m"],
    block: int = BLOCK,
) -> Int64[np.ndarray, " q"]:
    """Return the rank, from 1, of the best partner of each query among the others that are no partners. Others that are
    as similar come before it."""
    ranks = np.empty(len(queries), np.int64)
    for part, s, is_partner in similarity_blocks(queries, others, group, other_group, block):
        best = np.where(is_partner, s, -np.inf).max(1)
        ranks[part] = 1 + ((s >= best[:, None]) & ~is_partner).sum(1)
    return ranks


def unit_rows(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Return rows at length 1; a zero row stays."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def gap_of_means(a: Float[np.ndarray, "n d"], b: Float[np.ndarray, "m d"]) -> float:
    """Return the distance (0 to 2) between the means of the unit rows of two towers.
    Source: Liang et al. 2022, arXiv 2203.02053."""
    mean_a, mean_b = (unit_rows(x).mean(0, dtype=np.float64) for x in (a, b))
    return float(np.linalg.norm(mean_a - mean_b))
