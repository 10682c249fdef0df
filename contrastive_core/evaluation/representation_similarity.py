"""How alike embeddings of the same samples are: CKA, shared neighbors, Procrustes.

CKA is the debiased linear one (Kornblith et al. 2019, arXiv 1905.00414; Nguyen et al. 2020,
arXiv 2010.15327). Deviation: products of many embeddings are taken at once in float32, sums in
float64; the debiasing needs only row norms, so no n×n matrix is made.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet

__all__ = ["cka", "ckas", "matrix", "overlap", "overlaps", "procrustes", "procrustes_align"]

WIDEST = 8192  # columns of all embeddings together, up to which one product serves all pairs


def ckas(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Debiased linear CKA between embeddings (n, d_i) of the same samples: (runs, runs) float64.

    NaN where an embedding is constant or n is below 4.
    """
    n, count = len(parts[0]), len(parts)
    if n < 4:
        return np.full((count, count), np.nan)
    centerd = _side_by_side(parts)
    rows = [np.einsum("nd,nd->n", x, x, dtype=np.float64) for x in centerd]
    squares = _cross(centerd)
    similarity = np.empty((count, count))
    for i in range(count):
        for j in range(count):
            a, b = rows[i], rows[j]
            off = n / (n - 2) * (a @ b) - a.sum() * b.sum() / ((n - 1) * (n - 2))
            similarity[i, j] = squares[i, j] - off
    self_similarity = similarity.diagonal().copy()
    scale = np.sqrt(np.where(self_similarity > 0, self_similarity, np.nan))
    return similarity / (scale[:, None] * scale)


def cka(x: np.ndarray, y: np.ndarray) -> float:
    """Debiased linear CKA of two embeddings (n, d), (n, e) of the same samples; n at least 4."""
    return float(ckas([x, y])[0, 1])


def _side_by_side(parts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The embeddings centerd, in float32, as views of one array: written once, used as a whole."""
    ends = np.cumsum([0, *(x.shape[1] for x in parts)])
    joined = np.empty((len(parts[0]), ends[-1]), np.float32)
    for x, a, b in zip(parts, ends[:-1], ends[1:], strict=True):
        np.subtract(x, x.mean(0, dtype=np.float64).astype(x.dtype), out=joined[:, a:b],
                    casting="same_kind")  # fmt: skip
    return [joined[:, a:b] for a, b in itertools.pairwise(ends)]


def _cross(parts: Sequence[np.ndarray]) -> np.ndarray:
    """‖XᵢᵀXⱼ‖² of all pairs of parts that stand side by side, (runs, runs). Wide ones pair by pair,
    by whichever side is shorter."""
    widths = [x.shape[1] for x in parts]
    products = np.empty((len(parts), len(parts)))
    if sum(widths) <= WIDEST:
        joined = parts[0].base  # (n, Σd)
        assert joined is not None
        square = np.square(joined.T @ joined)  # BLAS knows that this is symmetric
        ends = np.cumsum([0, *widths])
        for i in range(len(parts)):
            for j in range(len(parts)):
                block = square[ends[i] : ends[i + 1], ends[j] : ends[j + 1]]
                products[i, j] = block.sum(dtype=np.float64)
        return products
    for i, x in enumerate(parts):
        for j, y in enumerate(parts[: i + 1]):
            if len(x) * 2 < x.shape[1] + y.shape[1]:  # Σ of (XXᵀ ∘ YYᵀ) is the same number
                value = np.einsum("nm,nm->", x @ x.T, y @ y.T, dtype=np.float64)
            else:
                value = np.square(x.T @ y).sum(dtype=np.float64)
            products[i, j] = products[j, i] = value
    return products


def procrustes(x: np.ndarray, y: np.ndarray) -> float:
    """Procrustes distance, 0 (alike up to turn, mirror and scale) to 1.

    The widths may differ, which scipy's refuses.
    """
    x, y = (_scaled(v) for v in (x, y))
    shared = np.linalg.svd(x.T @ y, compute_uv=False).sum()
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


def graphs_of(sets: Sequence[EmbeddingSet], k: int, graphs: Any = None) -> list[np.ndarray]:
    """The k nearest rows (n, k) of every set in itself."""
    from contrastive_core.embeddings.graphs import Graphs

    cache = graphs or Graphs()
    return [cache.get(s, None, k).index for s in sets]


def matrix(parts: Sequence[np.ndarray], of: Callable[[Any, Any], float]) -> np.ndarray:
    """A symmetric matrix of `of` between all pairs, the pair with itself included."""
    values = np.eye(len(parts))
    for i in range(len(parts)):
        for j in range(i + 1):
            values[i, j] = values[j, i] = of(parts[i], parts[j])
    return values


def _centered(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    return x - x.mean(0)


def _scaled(x: np.ndarray) -> np.ndarray:
    x = _centered(x)
    return x / max(1e-300, float(np.sqrt((x * x).sum())))
