"""Nearest rows by faiss (https://arxiv.org/abs/2401.08281), where it is installed: its flat search,
which is exact, and inverted lists, which look into some of the clusters of rows only.

Lists and not a graph of neighbors (HNSW): among 100,000 × 256 rows with structure, 1,024 lists were
made in 5 s of processor time and found 0.9998 of the 200 nearest of 10,000 queries in 1.6 s; HNSW
(M 32) was made in 11 s, found 0.981 in 5.6 s and 0.987 in 32 s.

Not on macOS: there faiss and torch bring an OpenMP each, and a process that uses both dies
(https://github.com/faiss-wheels/faiss-wheels/issues/73).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

__all__ = ["LISTS_QUERIES", "SAMPLE", "Search", "flat", "found_of", "library", "lists"]

# Of queries (r, d) and their own numbers (r), which are no neighbors, or None: how near (r, k), the
# larger the nearer, and the rows' numbers (r, k), in any order.
Search = Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor]]

RECALL = 0.995  # that is tuned for: a little above the 0.99 that is wanted of other queries
SAMPLE = 256  # queries that the lists are tuned on, and as many more that recall is measured on
PER_LIST = 40  # rows for each list that the clusters are made from
ROUNDS = 10  # of k-means
LISTS_QUERIES = 16_384  # at a time: those of one cluster, side by side, find its rows at hand
MOST = 1 / 8  # of all lists: above, products by blocks (the exact search) are faster


@cache
def library() -> Any | None:
    """The module faiss; None where it is not installed, or cannot live beside torch."""
    if sys.platform == "darwin":
        return None
    try:
        import faiss
    except ImportError:
        return None
    return faiss


def flat(b: Tensor, k: int, metric: str) -> Search:
    """faiss's exact search among b (m, d) float32: the k nearest by `metric`, "cosine" (of unit
    rows) or "euclidean"."""
    faiss = library()
    assert faiss is not None

    def search(q: Tensor, own: Tensor | None) -> tuple[Tensor, Tensor]:
        faiss.omp_set_num_threads(torch.get_num_threads())
        near, at = faiss.knn(q.numpy(), b.numpy(), k + (own is not None), _kind(faiss, metric))
        return _others(near, at, own, metric)

    return search


def lists(
    b: Tensor, k: int, metric: str, q: Tensor, own: Tensor | None, exact: Search
) -> tuple[Search, float] | None:
    """A search in inverted lists of the rows b (m, d), and the share of true neighbors it finds.

    As few lists are visited as find `RECALL` of the neighbors of a part of the sample; the recall
    is measured on the other part, which had no say.

    Args: q (s, d), own: the sample, queries as they will come; exact: gives their true neighbors.
    Returns: None where so many lists would have to be visited that the exact search is faster.
    """
    faiss = library()
    assert faiss is not None
    faiss.omp_set_num_threads(torch.get_num_threads())
    number = math.isqrt(len(b))
    index = faiss.IndexIVFFlat(
        faiss.IndexFlat(b.shape[1], _kind(faiss, metric)), b.shape[1], number, _kind(faiss, metric)
    )
    index.cp.max_points_per_centroid, index.cp.niter = PER_LIST, ROUNDS
    index.train(b.numpy())
    index.add(b.numpy())

    def search(q: Tensor, own: Tensor | None) -> tuple[Tensor, Tensor]:
        order = index.quantizer.search(q.numpy(), 1)[1][:, 0].argsort(kind="stable")
        near, at = index.search(q.numpy()[order], k + (own is not None))
        back = order.argsort()
        values, columns = _others(near[back], at[back], own, metric)
        short = (columns < 0).any(1)  # the lists hold fewer than k rows
        if short.any():
            values[short], columns[short] = exact(q[short], None if own is None else own[short])
        return values, columns

    def recall(part: slice) -> float:
        found = search(q[part], None if own is None else own[part])[1]
        return found_of(truth[part], found)

    truth = exact(q, own)[1]  # (s, k)
    index.nprobe = 2
    while index.nprobe <= number * MOST:
        if recall(slice(0, None, 2)) >= RECALL:
            return search, recall(slice(1, None, 2))
        index.nprobe += index.nprobe // 2
    return None


def found_of(truth: Tensor, found: Tensor) -> float:
    """The share of the true neighbors (s, k) that are among those found (s, k)."""
    return float((truth[:, :, None] == found[:, None]).any(2).float().mean())


def _kind(faiss: Any, metric: str) -> int:
    return int(faiss.METRIC_INNER_PRODUCT if metric == "cosine" else faiss.METRIC_L2)


def _others(near: Any, at: Any, own: Tensor | None, metric: str) -> tuple[Tensor, Tensor]:
    """What faiss returns without the query's own row, or without the last where that is not
    among them; squared distances as nearness."""
    values, columns = torch.from_numpy(near), torch.from_numpy(at)
    values = values if metric == "cosine" else -values
    if own is None:
        return values, columns
    left_out = columns == own[:, None]
    left_out[~left_out.any(1), -1] = True
    shape = (len(columns), columns.shape[1] - 1)
    return values[~left_out].view(shape), columns[~left_out].view(shape)
