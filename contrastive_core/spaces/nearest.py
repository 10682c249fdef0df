"""Nearest rows of an embedding for pages and files, from the stored graph or with numpy. Searches in tasks use
ops/neighbors.py, whose graphs are read here."""

from collections.abc import Iterator

import numpy as np

from contrastive_core.base import json_files
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import graph_path

BLOCK = 1024  # rows that are compared with all at a time
COLUMNS = 1 << 16  # rows that these are compared with at a time: of a million, all would be a copy
MAPPED = 1 << 20  # bytes of a kept graph's array that are read only where they are looked at
EXACT_UP_TO = 20_000  # rows: all against all in NumPy are seconds, of a million days


def nearest_of(rows: EmbeddingSet, at: np.ndarray | int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k rows most similar to each row `at` (r), and their cosines: (r, k), or (k) for one row. Ties: smaller
    number."""
    some = np.atleast_1d(np.asarray(at))
    found: list[tuple[np.ndarray, np.ndarray]] = [(np.zeros(0, np.int64), np.zeros(0))] * len(some)
    for block in range(0, len(some), BLOCK):
        for start, s in _cosines(rows, some[block : block + BLOCK]):
            for r, scores in enumerate(s, block):
                index = _top(scores, k)
                both = np.concatenate([found[r][0], start + index])
                values = np.concatenate([found[r][1].astype(s.dtype), scores[index]])
                order = np.argsort(-values, kind="stable")[:k]  # the earlier, of smaller numbers, first
                found[r] = both[order], values[order]
    shape = len(some), min(k, len(rows))
    index = np.array([row for row, _ in found], np.int64).reshape(shape)
    similarity = np.array([cosines for _, cosines in found]).reshape(shape)
    return (index, similarity) if np.ndim(at) else (index[0], similarity[0])


def _top(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the indices of the k largest scores (or all), descending; equal scores keep their order."""
    candidates = np.arange(len(scores))
    if k < len(scores) // 4:
        least = np.partition(-scores, k - 1)[k - 1]
        candidates = np.flatnonzero(~(-scores > least))  # what is no number, too: it is sorted last
    return candidates[np.argsort(-scores[candidates], kind="stable")[:k]]


def nearest_of_label(rows: EmbeddingSet, at: int, label: int, k: int) -> np.ndarray:
    """Return the k (or all) other rows of a label (int64) that are most similar to row `at` by cosine."""
    if rows.labels is None:
        return np.zeros(0, np.int64)
    some = np.flatnonzero(rows.labels == label)
    some = some[some != at]
    s = rows.features[some] @ rows.features[at] / rows.lengths[some]
    return np.asarray(some[_top(s, k)], np.int64)


def ranks_of(rows: EmbeddingSet, at: int, near: np.ndarray) -> np.ndarray:
    """Return the ranks (m) int64, from 1, of the rows `near` (m) in the order of `nearest_of`, without a sort."""
    s = np.concatenate([part[0] for _, part in _cosines(rows, np.array([at]))])  # (n)
    before = [np.count_nonzero(s > s[j]) + np.count_nonzero(s[:j] == s[j]) for j in near]
    return np.array(before, np.int64) + 1


def _cosines(rows: EmbeddingSet, some: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield cosines (r, columns) of some rows with all, in parts, with the first column's number; own ones are −∞."""
    for start in range(0, len(rows), COLUMNS):
        part = slice(start, start + COLUMNS)
        s = rows.features[some] @ rows.features[part].T / rows.lengths[part]  # (r, columns)
        s = s / rows.lengths[some][:, None]
        own = (some >= start) & (some < start + COLUMNS)
        s[own, some[own] - start] = -np.inf
        yield start, s


def nearest_of_all(rows: EmbeddingSet, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest rows of every row and their cosines, (n, k) each, from the stored graph if it is exact."""
    graph = kept_graph(rows, k)
    if graph is not None and graph[2] is None:
        return graph[:2]
    return nearest_of(rows, np.arange(len(rows)), k)


def kept_graph(rows: EmbeddingSet, k: int) -> tuple[np.ndarray, np.ndarray, float | None] | None:
    """Return the k nearest rows of every row, their cosines, (n, k) each, and the recall (None: exact), stored by a
    search for a map or a score; None if there is none."""
    try:
        graph = json_files.read_npz(graph_path(rows.content_hash, "cosine"), mapped=MAPPED)
        if graph["index"].shape[1] < k:
            return None
        recall = float(graph["recall"]) if "recall" in graph else None
        return graph["index"][:, :k], graph["score"][:, :k], recall
    except (OSError, ValueError, KeyError):
        return None
