"""Nearest rows of an embedding at once, for pages and files: the kept graph, or numpy. Torch-free.

Searches in tasks are ops/neighbors.py's, whose graphs are read here.
"""

from __future__ import annotations

import numpy as np

from contrastive_core.embeddings.cache import graph_path
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.storage import records

__all__ = ["nearest_of", "nearest_of_all", "nearest_of_label"]

BLOCK = 1024  # rows that are compared with all at a time


def nearest_of(rows: EmbeddingSet, at: np.ndarray | int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k other rows most similar to each row `at` (r), and the cosines: (r, k) each, or (k) for
    one row; ties go to the smaller number."""
    at = np.asarray(at)
    s = rows.features[at] @ rows.features.T / rows.lengths  # (r, n)
    s = s / rows.lengths[at][..., None]
    np.put_along_axis(s, at[..., None], -np.inf, axis=-1)
    index = np.argsort(-s, axis=-1, kind="stable")[..., :k]
    return index, np.take_along_axis(s, index, -1)


def nearest_of_label(rows: EmbeddingSet, at: int, label: int, k: int) -> np.ndarray:
    """The k rows of a label (int64), or all, that are most similar to row `at` by cosine, itself
    left out."""
    if rows.labels is None:
        return np.zeros(0, np.int64)
    some = np.flatnonzero(rows.labels == label)
    some = some[some != at]
    s = rows.features[some] @ rows.features[at] / rows.lengths[some]
    return np.asarray(some[np.argsort(-s, kind="stable")[:k]], np.int64)


def nearest_of_all(rows: EmbeddingSet, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The same of every row, (n, k) each, from the kept graph if there is one and it is exact."""
    try:
        graph = records.read_npz(graph_path(rows.content_hash, "cosine"))
        if graph["index"].shape[1] >= k and "recall" not in graph:
            return graph["index"][:, :k], graph["score"][:, :k]
    except (OSError, ValueError, KeyError):
        pass
    starts = range(0, len(rows), BLOCK)
    blocks = [nearest_of(rows, np.arange(s, min(s + BLOCK, len(rows))), k) for s in starts]
    index, similarity = zip(*blocks, strict=True)
    return np.concatenate(index), np.concatenate(similarity)
