"""How alike embeddings of the same samples are: CKA, shared neighbors, Procrustes.

CKA is the debiased linear one (Kornblith et al. 2019, arXiv 1905.00414; Nguyen et al. 2020, arXiv 2010.15327).
Deviation: products of many embeddings are taken at once in float32, sums in float64; the debiasing needs only row
norms, so no n×n matrix is made. Rows are centered and multiplied block by block, so that no embedding is copied.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from contrastive_core.ops.recall import lowest_recall, overlap
from contrastive_core.records.embedding_set import EmbeddingSet

__all__ = ["ckas", "graphs_of", "matrix", "overlap", "overlaps", "procrustes", "procrustes_align"]

WIDEST = 4096  # columns of all embeddings together, up to which one product serves all pairs
BLOCK = 1 << 26  # numbers of all embeddings that are centered at a time, 256 MB in float32


def ckas(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Debiased linear CKA between embeddings (n, d_i) of the same samples: (runs, runs) float64.

    NaN where an embedding is constant or n is below 4.
    """
    n, widths = len(parts[0]), [x.shape[1] for x in parts]
    if n < 4:
        return np.full((len(parts), len(parts)), np.nan)
    means = [x.mean(0, dtype=np.float64) for x in parts]
    together = sum(widths) <= WIDEST
    size = sum(widths) if together else 0
    rows, sums = np.zeros((len(parts), len(parts))), np.zeros(len(parts))  # Σ of products of squared lengths
    gram = np.zeros((size, size))
    for block in _blocks(n, sum(widths)):
        joined, centered = _centered([x[block] for x in parts], means)
        squares = np.stack([np.einsum("nd,nd->n", x, x, dtype=np.float64) for x in centered])
        rows += squares @ squares.T
        sums += squares.sum(1)
        if together:
            gram += joined.T @ joined  # BLAS knows that this is symmetric
    products = _squares_together(gram, widths) if together else _squares(parts, means)
    similarity = products - (n / (n - 2) * rows - np.outer(sums, sums) / ((n - 1) * (n - 2)))
    own = similarity.diagonal().copy()
    scale = np.sqrt(np.where(own > 0, own, np.nan))
    return similarity / (scale[:, None] * scale)


def _blocks(n: int, width: int) -> Iterator[slice]:
    """Rows of a block after the other, of BLOCK numbers or less."""
    step = max(1, BLOCK // width)
    yield from (slice(i, i + step) for i in range(0, n, step))


def _centered(parts: Sequence[np.ndarray], means: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """The embeddings centered, in float32, side by side (n, Σd), and each as a view of these."""
    ends = np.cumsum([0, *(x.shape[1] for x in parts)])
    joined = np.empty((len(parts[0]), ends[-1]), np.float32)
    views = [joined[:, a:b] for a, b in itertools.pairwise(ends)]
    for x, mean, view in zip(parts, means, views, strict=True):
        np.subtract(x, mean.astype(x.dtype), out=view, casting="same_kind")
    return joined, views


def _squares_together(gram: np.ndarray, widths: Sequence[int]) -> np.ndarray:
    """‖XᵢᵀXⱼ‖² of all pairs, (runs, runs), from the product of all that stand side by side."""
    starts = np.cumsum([0, *widths[:-1]])
    square = np.square(gram, out=gram)
    return np.asarray(np.add.reduceat(np.add.reduceat(square, starts, 0), starts, 1))


def _squares(parts: Sequence[np.ndarray], means: Sequence[np.ndarray]) -> np.ndarray:
    """The same for wide ones, pair by pair, by whichever side is shorter."""

    def square(i: int, j: int) -> float:
        x, y, both = parts[i], parts[j], (means[i], means[j])
        if len(x) * 2 < x.shape[1] + y.shape[1]:  # Σ of (XXᵀ ∘ YYᵀ) is the same number
            a, b = _centered([x, y], both)[1]
            return float(np.einsum("nm,nm->", a @ a.T, b @ b.T, dtype=np.float64))
        product = np.zeros((x.shape[1], y.shape[1]), np.float32)
        for block in _blocks(len(x), x.shape[1] + y.shape[1]):
            a, b = _centered([x[block], y[block]], both)[1]
            product += a.T @ b
        return float(np.square(product).sum(dtype=np.float64))

    return matrix(range(len(parts)), lambda i, j: square(j, i))


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
