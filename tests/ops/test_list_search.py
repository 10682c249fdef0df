"""Nearest rows by lists: exact where all are visited, and what is found otherwise is told."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contrastive_core.ops import list_search, neighbors
from contrastive_core.ops.list_search import Approximation, Lists, recall_of, tuned


def clusters(n: int, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    centers = draw.normal(size=(12, 8))
    return (centers[draw.integers(0, 12, n)] + 0.3 * draw.normal(size=(n, 8))).astype(np.float32)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("itself", [True, False])
@pytest.mark.parametrize("wide", [7, 512])
def test_visiting_all_lists_is_exact(metric: str, itself: bool, wide: int, monkeypatch) -> None:
    x, base = clusters(350), None if itself else clusters(250, 1)
    exact = neighbors.nearest(x, base, 9, metric)
    monkeypatch.setattr(neighbors, "APPROXIMATE_FROM", 0)
    monkeypatch.setattr(neighbors, "FEW", 0)
    monkeypatch.setattr(neighbors, "BLOCK_QUERIES", 128)
    monkeypatch.setattr(list_search, "WIDE", wide)
    monkeypatch.setattr(list_search, "CELLS", 30_000)
    found = neighbors.nearest(x, base, 9, metric, approximate=Approximation.of_rows(350))
    assert found.recall == 1
    np.testing.assert_array_equal(found.index, exact.index)
    np.testing.assert_allclose(found.score, exact.score, atol=1e-5)


def test_few_lists_find_some_and_say_how_many(monkeypatch) -> None:
    x = clusters(3000)
    exact = neighbors.nearest(x, None, 9).index
    monkeypatch.setattr(neighbors, "APPROXIMATE_FROM", 0)
    monkeypatch.setattr(neighbors, "FEW", 0)
    found = neighbors.nearest(x, None, 9, approximate=Approximation(0.0, 100))
    share = recall_of(torch.from_numpy(exact), torch.from_numpy(found.index))
    assert found.recall is not None
    assert found.recall == pytest.approx(share, abs=0.05)
    assert 0.3 < share < 1
    assert (found.index != np.arange(3000)[:, None]).all()
    assert all(len(set(row)) == 9 for row in found.index.tolist())


@pytest.mark.parametrize(("wanted", "times", "visited"), [(0, 4, 50), (1, 4, 200), (1, 60, 1600)])
def test_more_rows_are_met_until_enough_of_the_neighbors_are_found(wanted: float, times: int, visited: int) -> None:
    b = torch.from_numpy(np.random.default_rng(0).normal(size=(3000, 16)).astype(np.float32))
    b /= b.norm(dim=1, keepdim=True)

    def exact(q: torch.Tensor, own: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        s = q @ b.mT
        s[torch.arange(len(q)), own] = -torch.inf
        return s.topk(5)

    sample = torch.arange(0, 3000, 30)
    approximation = Approximation(wanted, 50, 50 * times, or_exact=False)
    found = tuned(b, 5, approximation, (b[sample], sample), exact)
    assert found is not None
    lists, recall = found
    assert lists.visited == visited
    share = recall_of(exact(b[sample], sample)[1], lists(b[sample], sample)[1])
    assert recall == pytest.approx(share, abs=0.1)
    assert (recall == 1) == (times == 60)


def test_a_query_always_has_its_k_also_among_rows_that_are_alike() -> None:
    b = torch.ones(50, 4)
    values, columns = Lists(b, 20, 1)(b, torch.arange(50))
    assert torch.isfinite(values).all()
    assert all(len(set(row)) == 20 for row in columns.tolist())
