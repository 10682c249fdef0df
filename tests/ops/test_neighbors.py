"""The graph is exact: equal to a full sort, near rows and ties included, in little memory."""

from __future__ import annotations

import numpy as np
import pytest

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.errors import UnusableEmbedding
from contrastive_core.ops import neighbors
from contrastive_core.ops.neighbors import nearest


def rows(n: int, d: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def brute(q: np.ndarray, b: np.ndarray, metric: str, own: bool) -> np.ndarray:
    q, b = q.astype(np.float64), b.astype(np.float64)
    if metric == "cosine":
        q, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, b))
        far = -q @ b.T
    else:
        far = np.linalg.norm(q[:, None] - b[None], axis=2)
    if own:
        np.fill_diagonal(far, np.inf)
    return far


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(("block", "k"), [(11, 13), (199, 3)])  # all ranked; few of each group
def test_equals_a_full_sort(metric: str, own: bool, block: int, k: int, monkeypatch) -> None:
    monkeypatch.setattr(neighbors, "QUERIES", 7)
    monkeypatch.setattr(neighbors, "BASE", block)
    q, b = rows(240), rows(253, seed=1)
    far = brute(q, q if own else b, metric, own)
    found = nearest(q, None if own else b, k, metric)
    assert np.array_equal(found.index, np.argsort(far, axis=1, kind="stable")[:, :k])
    sign = -1 if metric == "cosine" else 1
    wanted = sign * np.take_along_axis(far, found.index, 1)
    assert np.allclose(found.score, wanted, rtol=1e-5, atol=1e-6)


def test_near_rows_far_from_the_origin_keep_their_order() -> None:
    line = (1e4 + np.arange(64)[:, None] * np.float32(0.01) * np.ones((1, 8))).astype(np.float32)
    found = nearest(line, None, 2, "euclidean")
    inner = found.index[1:-1]
    assert np.array_equal(np.sort(inner, 1), np.stack([np.arange(62), np.arange(2, 64)], 1))


def test_ties_go_to_the_smaller_index() -> None:
    same = np.ones((6, 3), np.float32)
    assert nearest(same, None, 5).index[3].tolist() == [0, 1, 2, 4, 5]


def test_sentences_for_bad_input() -> None:
    with pytest.raises(UnusableEmbedding, match="6 neighbors were asked for among 5 rows"):
        nearest(rows(6), None, 6)
    bad = rows(6)
    bad[1, 1] = np.nan
    with pytest.raises(UnusableEmbedding, match="1 rows hold values that are not finite"):
        nearest(rows(6), bad, 2)
    with pytest.raises(UnusableEmbedding, match="must match"):
        nearest(rows(6), rows(6, 4), 2)


def test_one_graph_serves_every_smaller_k(monkeypatch) -> None:
    a, b = EmbeddingSet(rows(20)), EmbeddingSet(rows(30, seed=1))
    graphs = Graphs("cpu")
    wide = graphs.get(a, b, 9)
    monkeypatch.setattr(neighbors, "nearest", lambda *a: pytest.fail("computed twice"))
    assert np.array_equal(graphs.get(a, b, 4).index, wide.index[:, :4])
