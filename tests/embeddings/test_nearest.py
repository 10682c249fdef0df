"""What pages find at once is what the tasks find: the same rows in the same order."""

from __future__ import annotations

import numpy as np

from contrastive_core.embeddings import nearest
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.ops import neighbors


def test_at_once_and_by_a_task_the_same_rows_are_nearest(monkeypatch) -> None:
    monkeypatch.setattr(nearest, "BLOCK", 7)
    rows = EmbeddingSet(np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32) * 3)
    graph = neighbors.nearest(rows.features, None, 9)
    index, similarity = nearest.nearest_of_all(rows, 9)
    assert np.array_equal(index, graph.index)
    np.testing.assert_allclose(similarity, graph.score, atol=1e-6)
    one, cosines = nearest.nearest_of(rows, 3, 39)
    assert np.array_equal(one[:9], graph.index[3])
    assert 3 not in one
    np.testing.assert_allclose(cosines[:9], graph.score[3], atol=1e-6)


def test_of_equal_rows_the_first_comes_first() -> None:
    rows = EmbeddingSet(np.ones((5, 2), np.float32))
    assert nearest.nearest_of(rows, 2, 4)[0].tolist() == [0, 1, 3, 4]
