"""The graph is exact: equal to a full sort, near rows and ties included; or its recall is told. Pages find the same."""

import subprocess
import sys

import numpy as np
import pytest

from contrastive_core import metrics
from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.memory import in_common
from contrastive_core.spaces import neighbor_graphs, space
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import LIKELY, Approximation, Graphs, nearest


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
    monkeypatch.setattr(neighbor_graphs, "SCORES", 7 * block)
    monkeypatch.setattr(neighbor_graphs, "BASE", block)
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


def test_ties_go_to_the_smaller_index_and_bad_input_has_its_sentence() -> None:
    assert nearest(np.ones((6, 3), np.float32), None, 5).index[3].tolist() == [0, 1, 2, 4, 5]
    bad = rows(6)
    bad[1, 1] = np.nan
    for base, k, sentence in (
        (None, 6, "6 neighbors were asked for among 5 rows"),
        (bad, 2, "1 rows hold values that are not finite"),
        (rows(6, 4), 2, "must match"),
    ):
        with pytest.raises(UnusableEmbedding, match=sentence):
            nearest(rows(6), base, k)


def test_one_graph_serves_every_smaller_k(monkeypatch) -> None:
    a, b = EmbeddingSet(rows(20)), EmbeddingSet(rows(30, seed=1))
    graphs = Graphs("cpu")
    wide = graphs.get(a, b, 9)
    monkeypatch.setattr(neighbor_graphs, "nearest", lambda *a: pytest.fail("computed twice"))
    assert np.array_equal(graphs.get(a, b, 4).index, wide.index[:, :4])


def test_pages_find_the_same_neighbors_and_of_equal_rows_the_first(monkeypatch) -> None:
    monkeypatch.setattr(space, "BLOCK", 7)
    some, graph = EmbeddingSet(3 * rows(40, 6)), nearest(3 * rows(40, 6), None, 9)
    equal = EmbeddingSet(np.ones((50, 2), np.float32))
    for columns in (space.COLUMNS, 13, 1):
        monkeypatch.setattr(space, "COLUMNS", columns)
        index, similarity = space.nearest_of(some, np.arange(40), 9)
        assert np.array_equal(index, graph.index)
        np.testing.assert_allclose(similarity, graph.score, atol=1e-6)
        one, cosines = space.nearest_of(some, 3, 39)
        assert np.array_equal(one[:9], graph.index[3])
        assert 3 not in one
        np.testing.assert_allclose(cosines[:9], graph.score[3], atol=1e-6)
        assert np.array_equal(np.sort(space.nearest_of(some, np.array([3, 8]), 99)[0]), [np.arange(40)] * 2)
        assert space.nearest_of(equal, np.array([0, 2, 49]), 3)[0].tolist() == [[1, 2, 3], [0, 1, 3], [0, 1, 2]]


# --- approximate ------------------------------------------------------------------------------


def clusters(n: int, seed: int = 1, d: int = 16) -> np.ndarray:
    """Rows (n, 16) around 40 centers."""
    centers = np.random.default_rng(0).normal(size=(40, d))
    draw = np.random.default_rng(seed)
    x = 4 * centers[draw.integers(0, 40, n)] + draw.normal(size=(n, d))
    return x.astype(np.float32)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every search is a large one."""
    pytest.importorskip("faiss")
    for name in ("APPROXIMATE_FROM", "LARGE", "FEW"):
        monkeypatch.setattr(neighbor_graphs, name, 0)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("width", [12, 32])  # numbers of a row, or their codes
def test_faiss_finds_most_and_tells_its_recall(metric: str, own: bool, width: int, large, monkeypatch) -> None:
    draw = np.random.default_rng(0)
    b = (draw.normal(size=(40, width))[draw.integers(0, 40, 4000)] + draw.normal(size=(4000, width))).astype(np.float32)
    q = b if own else b[:1500] + 0.1
    true = nearest(q, None if own else b, 10, metric, "cpu")
    monkeypatch.setattr(neighbor_graphs, "EFFORTS", ((4, 1), (8, 4), (16, 16)))
    found = nearest(q, None if own else b, 10, metric, "cpu", approximate=Approximation(0.7, or_exact=False))
    recall = in_common(true.index, found.index).mean()
    assert found.recall == pytest.approx(recall, abs=0.05)
    assert 0.65 < recall < 1
    assert found.first(3).about == {"recall": found.recall}
    assert true.about == {}
    assert not own or (found.index != np.arange(4000)[:, None]).all()
    assert all(len(set(row)) == 10 for row in found.index.tolist())
    assert (np.diff(found.score) * (-1 if metric == "cosine" else 1) >= 0).all()
    same = in_common(true.index, found.index)
    if metric == "euclidean":  # the scores are those of the exact search
        assert np.allclose(found.score[:, 0][same[:, 0]], true.score[:, 0][same[:, 0]], rtol=1e-5)


def test_a_search_that_finds_too_few_gives_way_to_the_exact_one(large, monkeypatch) -> None:
    monkeypatch.setattr(neighbor_graphs, "EFFORTS", ((1, 1),))
    x = rows(1200, 64)  # noise: nothing to cluster
    exact = nearest(x, None, 20, device="cpu")
    assert nearest(x, None, 20, device="cpu", approximate=LIKELY).recall < 0.9
    found = nearest(x, None, 20, device="cpu", approximate=Approximation(0.99))
    assert found.recall is None
    assert np.array_equal(found.index, exact.index)
    monkeypatch.setattr(neighbor_graphs, "find_spec", lambda name: None)  # faiss is missing
    assert nearest(x, None, 20, device="cpu", approximate=LIKELY).recall is None


def test_rows_that_are_alike_have_their_neighbors(large) -> None:
    found = nearest(np.ones((300, 16), np.float32), None, 20, device="cpu", approximate=LIKELY)
    assert all(len(set(row)) == 20 for row in found.index.tolist())
    assert (found.index != np.arange(300)[:, None]).all()


FAISS_AND_TORCH = """
import numpy as np, torch
from contrastive_core.spaces import neighbor_graphs, space
neighbor_graphs.APPROXIMATE_FROM = neighbor_graphs.LARGE = neighbor_graphs.FEW = 0
torch.set_num_threads(2)
layer, x = torch.nn.Linear(32, 8), torch.randn(2000, 32)
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
for _ in range(2):
    layer(x).square().mean().backward()
    optimizer.step()
    found = neighbor_graphs.nearest(x.numpy(), None, 5, device="cpu", approximate=neighbor_graphs.LIKELY)
import faiss
assert found.recall is not None
assert torch.get_num_threads() == faiss.omp_get_max_threads() == 2
torch.set_num_threads(1)
neighbor_graphs.nearest(x.numpy(), None, 5, device="cpu", approximate=neighbor_graphs.LIKELY)
assert torch.get_num_threads() == faiss.omp_get_max_threads() == 1
"""


def test_faiss_and_torch_share_a_process_and_its_threads() -> None:
    pytest.importorskip("faiss")
    done = subprocess.run([sys.executable, "-c", FAISS_AND_TORCH], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_graphs_keep_the_recall_and_are_exact_where_asked(tmp_path, monkeypatch, large) -> None:
    monkeypatch.setattr(neighbor_graphs, "EFFORTS", ((4, 4),))
    rough = Approximation(0.5)
    path, told = tmp_path / "graph.npz", []
    x = EmbeddingSet(rows(1600, 4), np.arange(1600) % 3)
    graph = Graphs("cpu", place=lambda *a: path).get(x, None, 9, approximate=rough)
    assert graph.recall is not None
    assert graph.recall < 1
    read = Graphs("cpu", place=lambda *a: path)
    assert read.get(x, None, 9).recall == graph.recall
    for name in ("purity", "hubness"):
        assert metrics.create(name)(None, x, read).extras["recall"] == graph.recall
    knn = metrics.create("knn")(EmbeddingSet(rows(1600, 4, 2), np.arange(1600) % 3), x, read)
    assert 0.8 < knn.extras["recall"] <= 1
    monkeypatch.setattr(neighbor_graphs, "LONG", 1)
    of_all = Graphs("cpu", on_progress=lambda *stage: told.append(stage))
    assert of_all.get(x, None, 9, approximate=None).recall is None
    assert told[0] == ("nearest neighbors", 0.0)  # beforehand
    assert told[-2:] == [("nearest neighbors", 1.0), ("nearest neighbors found", None)]
