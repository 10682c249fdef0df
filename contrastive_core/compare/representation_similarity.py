"""Similarity of embeddings of the same samples: CKA, shared neighbors, Procrustes.

CKA is the debiased linear one (Kornblith et al. 2019, arXiv 1905.00414; Nguyen et al. 2020, arXiv 2010.15327).
Deviation: products are taken in float32, sums in float64; the debiasing needs only row norms, so no n×n matrix is made
unless rows are fewer than columns. Rows are centered and multiplied block by block, so that no embedding is copied.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from contrastive_core.base.large_arrays import lowest_recall, overlap
from contrastive_core.spaces.embedding_set import EmbeddingSet

BLOCK = 1 << 26  # numbers that are centered at a time, 256 MB in float32


def ckas(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Debiased linear CKA between embeddings (n, d_i) of the same samples: (runs, runs) float64.

    NaN where an embedding is constant or n is below 4.
    """
    n = len(parts[0])
    if n < 4:
        return np.full((len(parts), len(parts)), np.nan)
    means = [x.mean(0, dtype=np.float64) for x in parts]

    def product(i: int, j: int) -> float:
        """‖XᵢᵀXⱼ‖², by whichever side is shorter."""
        (x, y), widths = (parts[i], parts[j]), parts[i].shape[1] + parts[j].shape[1]
        if n * 2 < widths:  # Σ of (XXᵀ ∘ YYᵀ) is the same number
            a, b = _centered(x, means[i]), _centered(y, means[j])
            return float(np.einsum("nm,nm->", a @ a.T, b @ b.T, dtype=np.float64))
        both = np.zeros((x.shape[1], y.shape[1]), np.float32)
        for block in _blocks(n, widths):
            a = _centered(x[block], means[i])
            both += a.T @ (a if i == j else _centered(y[block], means[j]))
        return float(np.square(both).sum(dtype=np.float64))

    lengths = np.zeros((len(parts), n))  # squared, of the centered rows
    for i, x in enumerate(parts):
        for block in _blocks(n, x.shape[1]):
            centered = _centered(x[block], means[i])
            lengths[i, block] = np.einsum("nd,nd->n", centered, centered, dtype=np.float64)
    sums = lengths.sum(1)
    bias = n / (n - 2) * lengths @ lengths.T - np.outer(sums, sums) / ((n - 1) * (n - 2))
    similarity = matrix(range(len(parts)), product) - bias
    own = similarity.diagonal().copy()
    scale = np.sqrt(np.where(own > 0, own, np.nan))
    return similarity / (scale[:, None] * scale)


def _blocks(n: int, width: int) -> Iterator[slice]:
    """Rows of a block after the other, of BLOCK numbers or less."""
    step = max(1, BLOCK // width)
    yield from (slice(i, i + step) for i in range(0, n, step))


def _centered(x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return np.subtract(x, mean.astype(x.dtype)).astype(np.float32, copy=False)


def procrustes(x: np.ndarray, y: np.ndarray) -> float:
    """Procrustes distance, 0 (alike up to turn, mirror and scale) to 1.

    The widths may differ, which scipy's refuses.
    """
    means = [v.mean(0, dtype=np.float64) for v in (x, y)]
    product, squares = np.zeros((x.shape[1], y.shape[1])), np.zeros(2)
    for block in _blocks(len(x), 2 * (x.shape[1] + y.shape[1])):  # twice as large in float64
        a, b = (v[block].astype(np.float64) - mean for v, mean in zip((x, y), means, strict=True))
        product += a.T @ b
        squares += [np.square(a).sum(), np.square(b).sum()]
    lengths = np.maximum(1e-300, np.sqrt(squares))
    shared = np.linalg.svd(product, compute_uv=False).sum() / lengths.prod()
    return float(max(0.0, 1 - shared**2))


def procrustes_align(moving: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """A map (n, 2) turned and mirrored onto another (Procrustes), shifted to it and of its size.

    Of its size, not of the size that fits best (scipy's): that would shrink a map to a dot where the two have little in
    common.
    """
    x, y = moving - moving.mean(0), fixed - fixed.mean(0)
    u, _, v = np.linalg.svd(x.T @ y)
    scale = np.sqrt((y * y).sum() / max(1e-12, (x * x).sum()))
    return np.asarray(scale * x @ (u @ v) + fixed.mean(0), np.float32)


def procrustes_chain(maps: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Maps (n, 2) of the same rows, each aligned to the one before it. One of other rows starts anew."""
    aligned: list[np.ndarray] = []
    for xy in maps:
        is_same = bool(aligned) and len(aligned[-1]) == len(xy)
        aligned.append(procrustes_align(xy, aligned[-1]) if is_same else xy)
    return aligned


def overlaps(graphs: Sequence[np.ndarray]) -> np.ndarray:
    """Mean share of common neighbors between all pairs of graphs (n, k)."""
    return matrix(graphs, lambda a, b: float(overlap(a, b).mean()))


def graphs_of(sets: Sequence[EmbeddingSet], k: int, graphs: Any) -> tuple[list[np.ndarray], float | None]:
    """The k nearest rows (n, k) of every set in itself by the cache `graphs`, and the lowest recall of those that are
    approximate; None where all are exact."""
    found = [graphs.get(s, None, k) for s in sets]
    return [graph.index for graph in found], lowest_recall(graph.recall for graph in found)


def matrix(parts: Sequence[Any], of: Callable[[Any, Any], float]) -> np.ndarray:
    """A symmetric matrix of `of` between all pairs, the pair with itself included."""
    values = np.eye(len(parts))
    for i in range(len(parts)):
        for j in range(i + 1):
            values[i, j] = values[j, i] = of(parts[i], parts[j])
    return values
