"""Tolerance, hubness, purity, silhouette, neighbor stability, factors: closed forms and peers."""

import numpy as np
import pytest
from sample_sets import spread_blobs

from contrastive_core import metrics
from contrastive_core.base.errors import CannotScore
from contrastive_core.spaces.embedding_set import EmbeddingSet


def unit(rows: EmbeddingSet) -> np.ndarray:
    x = rows.features.astype(np.float64)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_tolerance_equals_the_loop_over_pairs() -> None:
    rows = spread_blobs(31, 1.0)
    x, y = unit(rows), rows.labels
    pairs = [x[i] @ x[j] for i in range(31) for j in range(i) if y[i] == y[j]]
    result = metrics.create("tolerance")(None, rows)
    assert result.value == pytest.approx(np.mean(pairs), abs=1e-6)
    assert result.extras["pairs"] == len(pairs)
    collapsed = EmbeddingSet(np.ones((6, 3), np.float32), np.arange(6) % 2)
    assert metrics.create("tolerance")(None, collapsed).value == pytest.approx(1)
    with pytest.raises(CannotScore, match="class with two rows"):
        metrics.create("tolerance")(None, spread_blobs(3, 1.0))


def test_hubness_counts_by_hand_and_matches_scipy() -> None:
    from scipy.stats import skew

    # Three spokes around a hub: each spoke's nearest is the hub, the hub's is the closest spoke.
    angle = np.radians([0, 10, -11, 12])
    star = np.stack([np.cos(angle), np.sin(angle)], 1)
    rows = EmbeddingSet(star.astype(np.float32))
    assert metrics.create("hubness", k=1)(None, rows).per_sample.sum() == 4
    many = spread_blobs(200, 1.0)
    result = metrics.create("hubness", k=7)(None, many)
    assert result.value == pytest.approx(skew(result.per_sample), abs=1e-9)
    assert result.per_sample.sum() == 7 * 200
    assert result.extras["largest"] == result.per_sample.max()
    ring = np.radians(np.arange(12) * 30)
    even = EmbeddingSet(np.stack([np.cos(ring), np.sin(ring)], 1).astype(np.float32))
    assert abs(metrics.create("hubness", k=11)(None, even).value) < 1e-9
    with pytest.raises(CannotScore, match="only 11 others"):
        metrics.create("hubness", k=12)(None, even)


def test_purity_equals_the_loop_and_leaves_unlabeled_rows_out() -> None:
    rows = spread_blobs(60, 1.5)
    rows.labels[:7] = -1
    x, y = unit(rows)[7:], rows.labels[7:]
    s = x @ x.T
    np.fill_diagonal(s, -np.inf)
    near = np.argsort(-s, axis=1)[:, :5]
    result = metrics.create("purity", k=5)(None, rows)
    assert result.value == pytest.approx((y[near] == y[:, None]).mean(), abs=1e-9)
    assert np.isnan(result.per_sample[:7]).all()
    assert result.extras["chance"] == pytest.approx(1 / 3, abs=0.02)
    assert result.interval[0] < result.value < result.interval[1]


def test_silhouette_matches_scikit_learn() -> None:
    from sklearn.metrics import silhouette_samples

    rows = spread_blobs(90, 1.5)
    rows.labels[0] = 3  # alone in its class
    result = metrics.create("silhouette")(None, rows)
    expected = silhouette_samples(unit(rows), rows.labels)
    assert np.allclose(result.per_sample, expected, atol=1e-5)
    rows.labels[5:9] = -1
    again = metrics.create("silhouette")(None, rows)
    kept = rows.labels >= 0
    assert again.value == pytest.approx(silhouette_samples(unit(rows)[kept], rows.labels[kept]).mean(), abs=1e-5)


def test_neighbor_stability_is_1_for_equal_views_and_chance_for_noise() -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(150, 6)).astype(np.float32)
    same = EmbeddingSet(x, views=np.stack([x, x * 2], 1))
    score = metrics.create("neighbor_stability", k=5)
    assert score(None, same).value == 1
    other = EmbeddingSet(x, views=np.stack([x, draw.normal(size=x.shape).astype(np.float32)], 1))
    noise = score(None, other)
    assert noise.value == pytest.approx(noise.extras["chance"], abs=0.03)
    assert score(None, EmbeddingSet(x)).value < 0.2  # independent columns share nothing
    doubled = EmbeddingSet(np.repeat(x[:, :1] * [[1.0]] + [[0.0]], 2, 1).astype(np.float32))
    assert score(None, doubled).extras["seen"] == "halves of columns"
    with pytest.raises(CannotScore, match="two columns"):
        score(None, EmbeddingSet(x[:, :1]))


def test_factors_finds_what_is_there_and_nothing_in_noise() -> None:
    draw = np.random.default_rng(0)

    def some(n: int) -> EmbeddingSet:
        size, hue, kind = draw.normal(size=n), draw.random(n), draw.integers(0, 3, n)
        noise = draw.normal(size=(n, 4))
        turn = 2 * np.pi * hue
        x = np.column_stack([size, np.cos(turn), np.sin(turn), np.eye(3)[kind], noise])
        known = {"size": size, "hue": hue, "kind": kind.astype(np.float32)}
        known |= {"hidden": draw.normal(size=n), "text": np.array(["a"] * n), "same": np.ones(n)}
        return EmbeddingSet(x.astype(np.float32), columns=known)

    result = metrics.create("factors")(some(400), some(200))
    found = result.extras
    assert min(found["size"], found["hue"], found["kind"]) > 0.98
    assert found["hidden"] < 0.05
    assert "text" not in found
    assert "same" not in found
    assert result.value == pytest.approx(np.mean([max(0, found[k]) for k in ("size", "hue", "kind", "hidden")]))
    plain = spread_blobs(20, 1.0)
    with pytest.raises(CannotScore, match="known factors"):
        metrics.create("factors")(plain, plain)


def test_knn_tells_curve_classes_and_confusion() -> None:
    train, test = spread_blobs(90, 1.8), spread_blobs(60, 1.8, seed=1, classes=3)
    result = metrics.create("knn")(train, test)
    predicted, table = result.arrays["predicted"], result.arrays["confusion"]
    for a in range(3):
        for b in range(3):
            assert table[a, b] == ((test.labels == a) & (predicted == b)).sum()
        told = result.extras["per_class"][a]
        assert told["value"] == pytest.approx(table[a, a] / 20)
        assert told["taken_for"] == table[a].tolist()
    assert list(result.extras["curve"]) == ["1", "2", "5", "10", "20", "50"]
    assert result.extras["curve"]["20"] == result.value
    rank = metrics.create("rankme")(None, test).extras["spectrum"]
    assert rank[0] == 1
    assert rank == sorted(rank, reverse=True)


def test_the_intervals_of_means_over_pairs_hold_the_truth() -> None:
    def some(n: int, seed: int) -> EmbeddingSet:
        draw = np.random.default_rng(seed)
        labels = np.arange(n) % 3
        x = 2 * np.eye(3, 6)[labels] + draw.normal(size=(n, 6))
        return EmbeddingSet(x.astype(np.float32), labels)

    for name in ("tolerance", "alignment"):
        truth = metrics.create(name)(None, some(6000, 1)).value
        held = 0
        for seed in range(100):
            low, high = metrics.create(name)(None, some(90, 100 + seed)).interval
            held += low <= truth <= high
        assert 88 <= held <= 100


def test_alpha_req_of_planted_power_laws() -> None:
    basis, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(400, 41)))
    basis -= basis.mean(0)
    basis, _ = np.linalg.qr(basis[:, :40])
    for alpha in (0.5, 1.0, 2.0):
        root = np.arange(1, 41) ** (-alpha / 2)  # of eigenvalues j^−α
        rows = EmbeddingSet((basis * root + 3).astype(np.float32))  # where it lies does not count
        result = metrics.create("alpha_req")(None, rows)
        assert result.value == pytest.approx(alpha, abs=1e-3)
        assert result.extras["eigenvalues"] == 38
    with pytest.raises(CannotScore, match="got 2"):
        metrics.create("alpha_req")(None, EmbeddingSet(basis[:, :4].astype(np.float32)))
    with pytest.raises(CannotScore, match="got 0"):
        metrics.create("alpha_req")(None, EmbeddingSet(np.ones((6, 9), np.float32)))


def test_lidar_counts_dimensions_that_tell_images_apart() -> None:
    draw = np.random.default_rng(0)
    images, noise = np.zeros((500, 1, 8)), np.zeros((500, 10, 8))
    images[:, :, :3] = draw.normal(size=(500, 1, 3))
    noise[:, :, :3] = 0.1 * draw.normal(size=(500, 10, 3))
    noise[:, :, 3:] = 5 * draw.normal(size=(500, 10, 5))  # what differs between views only
    views = (images + noise).astype(np.float32)
    rows = EmbeddingSet(views[:, 0].copy(), views=views)
    assert metrics.create("lidar")(None, rows).value == pytest.approx(3, abs=0.1)
    assert metrics.create("rankme")(None, rows).value > 6  # which takes the noise for dimensions
    with pytest.raises(CannotScore, match="augmented views"):
        metrics.create("lidar")(None, EmbeddingSet(views[:, 0].copy()))
    same = np.ones((4, 2, 3), np.float32)
    collapsed = EmbeddingSet(same[:, 0].copy(), views=same)
    with pytest.raises(CannotScore, match="one point"):
        metrics.create("lidar")(None, collapsed)


def test_lidar_equals_the_generalized_eigenvalues_written_out() -> None:
    views = np.random.default_rng(1).normal(size=(20, 4, 5)).astype(np.float32)
    means = views.mean(1, dtype=np.float64)
    within = sum(np.outer(r, r) for i in range(20) for r in views[i] - means[i]) / (20 * 3)
    between = np.cov(means.T)
    values, vectors = np.linalg.eigh(within + 1e-4 * np.eye(5))
    half = vectors @ np.diag(values**-0.5) @ vectors.T
    shares = np.linalg.eigvalsh(half @ between @ half)
    shares /= shares.sum()
    expected = np.exp(-(shares * np.log(shares)).sum())
    rows = EmbeddingSet(views[:, 0].copy(), views=views)
    assert metrics.create("lidar")(None, rows).value == pytest.approx(expected, rel=1e-9)
