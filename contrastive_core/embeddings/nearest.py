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
COLUMNS = 1 << 16  # rows that these are compared with at a time: of a million, all would be a copy


def nearest_of(rows: EmbeddingSet, at: np.ndarray | int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k other rows most similar to each row `at` (r), and the cosines: (r, k) each, or (k) for
    one row; ties go to the smaller number."""
    some = np.atleast_1d(np.asarray(at))
    found: list[tuple[np.ndarray, np.ndarray]] = [(np.zeros(0, np.int64), np.zeros(0))] * len(some)
    for start in range(0, len(rows), COLUMNS):
        part = slice(start, start + COLUMNS)
        s = rows.features[some] @ rows.features[part].T / rows.lengths[part]  # (r, columns)
        s = s / rows.lengths[some][:, None]
        own = (some >= start) & (some < start + COLUMNS)
        s[own, some[own] - start] = -np.inf
        for r, scores in enumerate(s):
            index = _top(scores, k)
            both = np.concatenate([found[r][0], start + index])
            values = np.concatenate([found[r][1].astype(s.dtype), scores[index]])
            order = np.argsort(-values, kind="stable")[:k]  # the earlier, of smaller numbers, first
            found[r] = both[order], values[order]
    index, similarity = (np.stack(v) for v in zip(*found, strict=True))
    return (index, similarity) if np.ndim(at) else (index[0], similarity[0])


def _top(scores: np.ndarray, k: int) -> np.ndarray:
    """Places of the k largest, or all, in falling order; of equal ones the first come first."""
    candidates = np.arange(len(scores))
    if k < len(scores) // 4:
        least = np.partition(-scores, k - 1)[k - 1]
        candidates = np.flatnonzero(~(-scores > least))  # what is no number, too: it is sorted last
    return candidates[np.argsort(-scores[candidates], kind="stable")[:k]]


def nearest_of_label(rows: EmbeddingSet, at: int, label: int, k: int) -> np.ndarray:
    """The k rows of a label (int64), or all, that are most similar to row `at` by cosine, itself
    left out."""
    if rows.labels is None:
        return np.zeros(0, np.int64)
    some = np.flatnonzero(rows.labels == label)
    some = some[some != at]
    s = rows.features[some] @ rows.features[at] / rows.lengths[some]
    return np.asarray(some[_top(s, k)], np.int64)


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
