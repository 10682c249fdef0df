"""What pages find at once is what the tasks find: the same rows in the same order."""

from pathlib import Path

import numpy as np
import pytest

from contrastive_core.base.memory import write_npz
from contrastive_core.spaces import nearest, neighbor_graphs
from contrastive_core.spaces.embedding_set import EmbeddingSet


def test_at_once_and_by_a_task_the_same_rows_are_nearest(monkeypatch) -> None:
    monkeypatch.setattr(nearest, "BLOCK", 7)
    rows = EmbeddingSet(np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32) * 3)
    graph = neighbor_graphs.nearest(rows.features, None, 9)
    index, similarity = nearest.nearest_of(rows, np.arange(40), 9)
    assert np.array_equal(index, graph.index)
    np.testing.assert_allclose(similarity, graph.score, atol=1e-6)
    one, cosines = nearest.nearest_of(rows, 3, 39)
    assert np.array_equal(one[:9], graph.index[3])
    assert 3 not in one
    np.testing.assert_allclose(cosines[:9], graph.score[3], atol=1e-6)


def test_of_equal_rows_the_first_comes_first(monkeypatch) -> None:
    rows = EmbeddingSet(np.ones((50, 2), np.float32))
    for columns in (nearest.COLUMNS, 7, 1):
        monkeypatch.setattr(nearest, "COLUMNS", columns)
        assert nearest.nearest_of(rows, 2, 4)[0].tolist() == [0, 1, 3, 4]
        many, _ = nearest.nearest_of(rows, np.array([0, 49]), 3)
        assert many.tolist() == [[1, 2, 3], [0, 1, 2]]


def test_a_kept_graph_comes_with_its_recall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "graph_path", lambda *a: tmp_path / "graph.npz")
    rows = EmbeddingSet(np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32))
    assert nearest.kept_graph(rows, 5) is None
    graph = neighbor_graphs.nearest(rows.features, None, 9)
    path = tmp_path / "graph.npz"
    write_npz(path, index=graph.index, score=graph.score, recall=np.array(0.97))
    found = nearest.kept_graph(rows, 5)
    assert found is not None
    assert np.array_equal(found[0], graph.index[:, :5])
    assert found[2] == 0.97
    assert nearest.kept_graph(rows, 10) is None
    write_npz(path, index=graph.index, score=graph.score)
    exact = nearest.kept_graph(rows, 9)
    assert exact is not None
    assert exact[2] is None
