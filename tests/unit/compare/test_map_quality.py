"""The judges of maps match a peer, whatever is judged at a time."""

import numpy as np
import pytest

from contrastive_core.compare import projection
from contrastive_core.compare.projection import agreement, judge


def rows(n: int = 60, d: int = 6, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32) * np.arange(d, 0, -1)


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


def test_judging_a_sample_of_anchors_stays_close(monkeypatch) -> None:
    x = rows(400)
    whole = judge(x, np.ascontiguousarray(x[:, :2]))["trustworthiness"]
    monkeypatch.setattr(projection, "JUDGED", 200)
    part = judge(x, np.ascontiguousarray(x[:, :2]))["trustworthiness"]
    assert part == pytest.approx(whole, abs=0.02)


def test_of_many_rows_fewer_are_judged(monkeypatch) -> None:
    x = rows(400)
    monkeypatch.setattr(projection, "LARGE_MAP", 300)
    monkeypatch.setattr(projection, "JUDGED_OF_LARGE", 200)
    monkeypatch.setattr(projection, "CELLS", 1000)  # two rows at a time
    xy = np.ascontiguousarray(x[:, :2])
    assert judge(x, xy)["judged"] == 200
    assert judge(x[:300], xy[:300])["judged"] == 300


def test_the_judgment_of_blocks_is_that_of_the_whole(monkeypatch) -> None:
    x = rows(100).astype(np.float32)
    xy = np.ascontiguousarray(x[:, 1:3])
    whole = judge(x, xy, landmarks=np.arange(0, 100, 2))
    monkeypatch.setattr(projection, "BLOCK", 60)  # ten rows at a time
    assert judge(x, xy, landmarks=np.arange(0, 100, 2)) == pytest.approx(whole, abs=1e-12)
    assert whole["n"] == whole["judged"] == 100
    of_all = judge(x, xy, landmarks=np.arange(100))
    assert of_all["trustworthiness_of_landmarks"] == of_all["trustworthiness"]


def test_maps_of_the_same_neighbors_agree() -> None:
    xy = rows(50, 2).astype(np.float32)
    assert agreement([xy, xy * 2, -xy], 5) == 1
    assert agreement([xy, rows(50, 2, seed=1).astype(np.float32)], 5) < 0.5
    together = np.zeros((20, 2), np.float32)  # no row is the nearest of itself
    assert 0 <= agreement([together, together], 5) <= 1
