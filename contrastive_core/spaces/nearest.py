"""Nearest rows and principal components of an embedding, by numpy, fast enough for pages and files. Searches in tasks
use spaces/neighbor_graphs.py, whose graphs are read here."""

import numpy as np

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.memory import read_npz
from contrastive_core.base.messages import N_
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
    for first in range(0, len(some), BLOCK):
        block = some[first : first + BLOCK]
        for start in range(0, len(rows), COLUMNS):
            part = slice(start, start + COLUMNS)
            s = rows.features[block] @ rows.features[part].T / rows.lengths[part]  # (r, columns)
            s = s / rows.lengths[block][:, None]
            own = (block >= start) & (block < start + COLUMNS)
            s[own, block[own] - start] = -np.inf
            for r, scores in enumerate(s, first):
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


def kept_graph(rows: EmbeddingSet, k: int) -> tuple[np.ndarray, np.ndarray, float | None] | None:
    """Return the k nearest rows of every row, their cosines, (n, k) each, and the recall (None: exact), stored by a
    search for a map or a score; None if there is none."""
    try:
        graph = read_npz(graph_path(rows.content_hash, "cosine"), mapped=MAPPED)
        if graph["index"].shape[1] < k:
            return None
        recall = float(graph["recall"]) if "recall" in graph else None
        return graph["index"][:, :k], graph["score"][:, :k], recall
    except (OSError, ValueError, KeyError):
        return None


CENTERED = 1 << 24  # numbers that are centered at a time
LEAST = 1e-6  # of the first axis's variance; in float32 a sampled axis of less is noise


def pca(features: np.ndarray, components: int = 2, at_most: int | None = None) -> np.ndarray:
    """Return scores (n, components) on the leading principal axes, float32; signs are fixed. Missing components (fewer
    columns or rows) are zero. `features`: (n, d); `at_most`: if both n and d are larger, the axes are computed from
    that many rows, chosen by a fixed seed. Raises UnusableEmbedding for values that are not finite."""
    n, d = features.shape
    step = max(1, CENTERED // d)
    parts = [slice(i, i + step) for i in range(0, n, step)]
    total = np.zeros(d)
    for part in parts:
        total += np.asarray(features[part], np.float32).sum(0, dtype=np.float64)
    if not np.isfinite(total).all():
        raise UnusableEmbedding(N_("some rows hold values that are not finite"))
    mean = (total / n).astype(np.float32)

    def centered(at: slice | np.ndarray) -> np.ndarray:
        return np.asarray(features[at], np.float32) - mean

    if at_most is not None and at_most < min(n, d):
        some = centered(np.random.default_rng(0).permutation(n)[:at_most])
        values, left_vectors = _leading(some @ some.T, components)
        lengths = np.where(values > LEAST * values[0], np.sqrt(values), np.inf)
        axes = ((some.T @ left_vectors) / lengths).astype(np.float32)  # of length 1
        scores = np.concatenate([centered(part) @ axes for part in parts])
    elif d <= n:
        gram = np.zeros((d, d), np.float32)
        for x in map(centered, parts):
            gram += x.T @ x
        axes = _leading(gram, components)[1].astype(np.float32)
        scores = np.concatenate([centered(part) @ axes for part in parts])
    else:
        x = centered(slice(None))
        values, left_vectors = _leading(x @ x.T, components)
        scores = (left_vectors * np.sqrt(values)).astype(np.float32)
    out = np.zeros((n, components), np.float32)
    out[:, : scores.shape[1]] = scores
    columns = np.arange(components)
    return np.where(out[np.abs(out).argmax(0), columns] < 0, -out, out)


def _leading(symmetric: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues (c), at least 0, and their vectors (m, c), in float64."""
    values, vectors = np.linalg.eigh(symmetric.astype(np.float64))
    return values[::-1][:count].clip(0), vectors[:, ::-1][:, :count]
