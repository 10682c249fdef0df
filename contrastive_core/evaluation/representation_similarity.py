"""How alike embeddings of the same samples are: CKA, shared neighbors, Procrustes.

CKA is the debiased linear one (Kornblith et al. 2019, arXiv 1905.00414; Nguyen et al. 2020,
arXiv 2010.15327). Deviation: products of many embeddings are taken at once in float32, sums in
float64; the debiasing needs only row norms, so no n×n matrix is made. Rows are centered and
multiplied block by block, so that no embedding is copied.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from contrastive_core.ops.recall import lowest_recall
from contrastive_core.records.embedding_set import EmbeddingSet

__all__ = ["cka", "ckas", "matrix", "overlap", "overlaps", "procrustes", "procrustes_align"]

WIDEST = 4096  # columns of all embeddings together, up to which one product serves all pairs
BLOCK = 1 << 26  # numbers of all embeddings that are centered at a time, 256 MB in float32


def ckas(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Debiased linear CKA between embeddings (n, d_i) of the same samples: (runs, runs) float64.

    NaN where an embedding is constant or n is below 4.
    """
    n, count = len(parts[0]), len(parts)
    if n < 4:
        return np.full((count, count), np.nan)
    means = [x.mean(0, dtype=np.float64) for x in parts]
    widths = [x.shape[1] for x in parts]
    together = sum(widths) <= WIDEST
    rows, sums = np.zeros((count, count)), np.zeros(count)  # Σ of products of squared lengths
    gram = np.zeros((sum(widths), sum(widths))) if together else None
    for block in _blocks(n, sum(widths)):
        centered = _side_by_side([x[block] for x in parts], means)
        squares = np.stack([np.einsum("nd,nd->n", x, x, dtype=np.float64) for x in centered])
        rows += squares @ squares.T
        sums += squares.sum(1)
        if gram is not None:
            joined = centered[0].base  # (r, Σd)
            assert joined is not None
            gram += joined.T @ joined  # BLAS knows that this is symmetric
    squares = _squares_together(gram, widths) if gram is not None else _squares(parts, means)
    off = n / (n - 2) * rows - np.outer(sums, sums) / ((n - 1) * (n - 2))
    similarity = squares - off
    self_similarity = similarity.diagonal().copy()
    scale = np.sqrt(np.where(self_similarity > 0, self_similarity, np.nan))
    return similarity / (scale[:, None] * scale)


def cka(x: np.ndarray, y: np.ndarray) -> float:
    """Debiased linear CKA of two embeddings (n, d), (n, e) of the same samples; n at least 4."""
    return float(ckas([x, y])[0, 1])


def _blocks(n: int, width: int) -> Iterator[slice]:
    """Rows of a block after the other, of BLOCK numbers or less."""
    step = max(1, BLOCK // width)
    yield from (slice(i, i + step) for i in range(0, n, step))


def _side_by_side(parts: Sequence[np.ndarray], means: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The embeddings centered, in float32, as views of one array: written once, used as a whole."""
    ends = np.cumsum([0, *(x.shape[1] for x in parts)])
    joined = np.empty((len(parts[0]), ends[-1]), np.float32)
    for x, mean, a, b in zip(parts, means, ends[:-1], ends[1:], strict=True):
        np.subtract(x, mean.astype(x.dtype), out=joined[:, a:b], casting="same_kind")
    return [joined[:, a:b] for a, b in itertools.pairwise(ends)]


def _squares_together(gram: np.ndarray, widths: Sequence[int]) -> np.ndarray:
    """‖XᵢᵀXⱼ‖² of all pairs, (runs, runs), from the product of all that stand side by side."""
    starts = np.cumsum([0, *widths[:-1]])
    square = np.square(gram, out=gram)
    return np.asarray(np.add.reduceat(np.add.reduceat(square, starts, 0), starts, 1))


def _squares(parts: Sequence[np.ndarray], means: Sequence[np.ndarray]) -> np.ndarray:
    """The same for wide ones, pair by pair, by whichever side is shorter."""
    squares = np.empty((len(parts), len(parts)))
    for i, j in itertools.combinations_with_replacement(range(len(parts)), 2):
        x, y, n = parts[i], parts[j], len(parts[i])
        if n * 2 < x.shape[1] + y.shape[1]:  # Σ of (XXᵀ ∘ YYᵀ) is the same number
            x, y = _side_by_side([x, y], [means[i], means[j]])
            value = np.einsum("nm,nm->", x @ x.T, y @ y.T, dtype=np.float64)
        else:
            value = np.square(_product(x, y, means[i], means[j])).sum(dtype=np.float64)
        squares[i, j] = squares[j, i] = value
    return squares


def _product(x: np.ndarray, y: np.ndarray, x_mean: np.ndarray, y_mean: np.ndarray) -> np.ndarray:
    """XᵀY of the centered embeddings, (d, e), in float32."""
    product = np.zeros((x.shape[1], y.shape[1]), np.float32)
    for block in _blocks(len(x), x.shape[1] + y.shape[1]):
        a, b = _side_by_side([x[block], y[block]], [x_mean, y_mean])
        product += a.T @ b
    return product


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

    Of its size, not of the size that fits best (scipy's): that would shrink a map to a dot where
    the two have little in common.
    """
    x, y = moving - moving.mean(0), fixed - fixed.mean(0)
    u, _, v = np.linalg.svd(x.T @ y)
    scale = np.sqrt((y * y).sum() / max(1e-12, (x * x).sum()))
    return np.asarray(scale * x @ (u @ v) + fixed.mean(0), np.float32)


def overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Share of the k neighbors (n, k) that two spaces have in common, per sample (n)."""
    shares = np.empty(len(a))
    for start in range(0, len(a), 1024):
        part = a[start : start + 1024, :, None] == b[start : start + 1024, None]  # (r, k, k)
        shares[start : start + 1024] = part.any(2).mean(1)
    return shares


def overlaps(graphs: Sequence[np.ndarray]) -> np.ndarray:
    """Mean share of common neighbors between all pairs of graphs (n, k)."""
    return matrix(graphs, lambda a, b: float(overlap(a, b).mean()))


def graphs_of(sets: Sequence[EmbeddingSet], k: int, graphs: Any) -> tuple[list[np.ndarray], float | None]:
    """The k nearest rows (n, k) of every set in itself by the cache `graphs`, and the lowest recall of
    those that are approximate; None where all are exact."""
    found = [graphs.get(s, None, k) for s in sets]
    return [graph.index for graph in found], lowest_recall(graph.recall for graph in found)


def matrix(parts: Sequence[np.ndarray], of: Callable[[Any, Any], float]) -> np.ndarray:
    """A symmetric matrix of `of` between all pairs, the pair with itself included."""
    values = np.eye(len(parts))
    for i in range(len(parts)):
        for j in range(i + 1):
            values[i, j] = values[j, i] = of(parts[i], parts[j])
    return values
