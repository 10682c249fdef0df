"""Maps are exact where they can be, repeat with their seed, and their judges match a peer."""

from dataclasses import replace

import numpy as np
import pytest

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.memory import rows_of_sample
from contrastive_core.compare import projection
from contrastive_core.compare.projection import judge, map_of, project_new, umap
from contrastive_core.spaces import space
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs
from contrastive_core.spaces.space import pca


def rows(n: int = 60, d: int = 6, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32) * np.arange(d, 0, -1)


@pytest.mark.parametrize(("n", "d"), [(60, 6), (10, 40)])
def test_pca_equals_the_singular_value_decomposition(n: int, d: int) -> None:
    x = rows(n, d).astype(np.float32)
    u, s, _ = np.linalg.svd((x - x.mean(0)).astype(np.float64), full_matrices=False)
    assert np.allclose(np.abs(pca(x)), np.abs(u[:, :2] * s[:2]), atol=1e-3)
    assert np.array_equal(pca(x), pca(x))


def test_pca_of_blocks_is_that_of_the_whole(monkeypatch) -> None:
    x = rows(60, 6).astype(np.float32)
    whole, some = pca(x), pca(x, at_most=5)
    monkeypatch.setattr(space, "CENTERED", 50)  # eight rows at a time
    assert np.allclose(pca(x), whole, atol=1e-4)
    assert np.allclose(pca(x, at_most=5), some, atol=1e-4)


def test_axes_of_some_rows_keep_every_length_where_all_lie_in_a_plane() -> None:
    x = rows(60, 2) @ np.linalg.qr(rows(40, 2, seed=1))[0].T + 5  # (60, 40), of rank 2
    spread = np.linalg.norm(pca(x, at_most=20), axis=1)
    assert np.allclose(spread, np.linalg.norm(pca(x), axis=1), rtol=1e-3, atol=1e-3)


def test_pca_of_one_column_has_a_second_axis_of_zeros() -> None:
    assert not pca(rows(5, 1))[:, 1].any()
    bad = rows(5, 2)
    bad[0, 0] = np.inf
    with pytest.raises(UnusableEmbedding):
        pca(bad)


def test_a_row_of_the_map_keeps_its_place() -> None:
    xy = rows(50, 2).astype(np.float32)
    base = rows(40)
    assert np.allclose(project_new(base[:3], base, xy[:40]), xy[:3], atol=1e-3)
    assert project_new(rows(2, seed=3), base, xy[:40]).shape == (2, 2)


def test_a_new_row_falls_among_most_of_its_neighbors_not_between_them() -> None:
    base = np.array([[1, 0.01 * q] for q in range(9)], np.float32)  # all about equally near
    xy = np.array([[0, 0]] * 6 + [[10, 0]] * 3, np.float32)
    assert np.abs(project_new(base[4:5] * 1.001 + [0, 1e-3], base, xy, 9)).max() < 0.5


def test_umap_repeats_and_separates() -> None:
    labels = np.arange(90) % 3
    x = (np.eye(3, 5)[labels] * 5 + np.random.default_rng(0).normal(size=(90, 5)) * 0.2).astype(np.float32)
    first = map_of(EmbeddingSet(x, labels), "umap", seed=1, neighbors=8)
    assert np.array_equal(first.xy, umap(x, seed=1, neighbors=8))
    assert first.settings["min_dist"] == 0.1
    assert first.quality["trustworthiness"] > 0.85
    centers = np.stack([first.xy[labels == c].mean(0) for c in range(3)])
    nearest_center = np.linalg.norm(first.xy[:, None] - centers, axis=2).argmin(1)
    assert np.array_equal(nearest_center, labels)


def test_a_map_of_an_approximate_graph_says_its_recall() -> None:
    x = EmbeddingSet(rows(80).astype(np.float32))
    graphs = Graphs("cpu")
    exact = map_of(x, "umap", graphs, neighbors=8)
    assert "recall" not in exact.quality
    key = next(iter(graphs.cached))
    graphs.cached[key] = replace(graphs.cached[key], recall=0.75)
    approximate = map_of(x, "umap", graphs, neighbors=8)
    assert approximate.quality == {**exact.quality, "recall": 0.75}


def test_above_a_size_landmarks_are_laid_out_and_the_others_placed(monkeypatch) -> None:
    monkeypatch.setattr(projection, "MANY", 100)
    monkeypatch.setattr(projection, "LANDMARKS", 60)
    monkeypatch.setattr(projection, "PLACED", 50)  # in several parts
    labels = np.arange(180) % 3
    noise = np.random.default_rng(0).normal(size=(180, 5)) * 0.2
    x = (np.eye(3, 5)[labels] * 5 + noise).astype(np.float32)
    drawn = map_of(EmbeddingSet(x, labels), "umap", seed=1, neighbors=8)
    landmarks = rows_of_sample(180, 60, seed=1)
    assert drawn.settings["landmarks"] == 60
    assert np.array_equal(drawn.xy[landmarks], umap(x[landmarks], seed=1, neighbors=8))
    others = np.setdiff1d(np.arange(180), landmarks)
    placed = project_new(x[others], x[landmarks], drawn.xy[landmarks])
    assert np.allclose(drawn.xy[others], placed, atol=1e-5)
    centers = np.stack([drawn.xy[labels == c].mean(0) for c in range(3)])
    assert np.array_equal(np.linalg.norm(drawn.xy[:, None] - centers, axis=2).argmin(1), labels)
    assert drawn.quality["trustworthiness"] > 0.85
    assert 0.8 < drawn.quality["trustworthiness_of_landmarks"] < 1
    assert "landmarks" not in map_of(EmbeddingSet(x[:100], labels[:100]), "umap").settings


def test_sentences_for_what_cannot_be_mapped() -> None:
    with pytest.raises(UnusableEmbedding, match="all alike"):
        umap(np.ones((40, 4), np.float32))
    with pytest.raises(UnusableEmbedding, match="four rows"):
        map_of(EmbeddingSet(rows(3).astype(np.float32)), "umap")
    with pytest.raises(ValueError, match="pca or umap"):
        map_of(EmbeddingSet(rows().astype(np.float32)), "tsne")
    bad = rows(9).astype(np.float32)
    bad[2] = np.nan
    with pytest.raises(UnusableEmbedding, match="1 rows"):
        map_of(EmbeddingSet(bad))
    assert map_of(EmbeddingSet(np.zeros((20, 4), np.float32))).xy.shape == (20, 2)


def test_judges_match_scikit_learn() -> None:
    from sklearn.manifold import trustworthiness as peer

    x = rows(80)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    xy = np.ascontiguousarray(x[:, :2])
    ours = judge(x, xy, 7)
    assert ours["trustworthiness"] == pytest.approx(peer(unit, xy, n_neighbors=7), abs=1e-9)
    assert ours["continuity"] == pytest.approx(peer(xy, unit, n_neighbors=7), abs=1e-9)
    angle = np.random.default_rng(1).uniform(0, 6.28, 50)
    circle = np.stack([np.cos(angle), np.sin(angle)], 1).astype(np.float32)
    assert judge(circle, circle, 5)["trustworthiness"] == 1


def test_of_many_rows_a_sample_is_judged_and_stays_close(monkeypatch) -> None:
    x = rows(400)
    xy = np.ascontiguousarray(x[:, :2])
    whole = judge(x, xy)
    monkeypatch.setattr(projection, "LARGE_MAP", 300)
    monkeypatch.setattr(projection, "JUDGED_OF_LARGE", 200)
    monkeypatch.setattr(projection, "CELLS", 1000)  # two rows at a time
    part = judge(x, xy)
    assert (whole["judged"], part["judged"], judge(x[:300], xy[:300])["judged"]) == (400, 200, 300)
    assert part["trustworthiness"] == pytest.approx(whole["trustworthiness"], abs=0.02)


def test_the_judgment_of_blocks_is_that_of_the_whole(monkeypatch) -> None:
    x = rows(100).astype(np.float32)
    xy = np.ascontiguousarray(x[:, 1:3])
    whole = judge(x, xy, landmarks=np.arange(0, 100, 2))
    monkeypatch.setattr(projection, "BLOCK", 60)  # ten rows at a time
    assert judge(x, xy, landmarks=np.arange(0, 100, 2)) == pytest.approx(whole, abs=1e-12)
    assert whole["n"] == whole["judged"] == 100
    of_all = judge(x, xy, landmarks=np.arange(100))
    assert of_all["trustworthiness_of_landmarks"] == of_all["trustworthiness"]
