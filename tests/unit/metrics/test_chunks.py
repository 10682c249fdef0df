"""Scores of many rows: by blocks what the formula gives at once, in memory that does not grow with
rows × classes or rows × rows, or on a sample that is said."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from cases import cases
from largest import Largest

from benchmarks.probe import objective
from contrastive_core import metrics
from contrastive_core.base import memory
from contrastive_core.base.memory import rows_of_sample, sample_text
from contrastive_core.metrics import (
    alignment,
    factors,
    knn,
    lidar,
    linear_probe,
    neighbor_stability,
    rankme,
    silhouette,
    uniformity,
)
from contrastive_core.metrics.linear_probe import Logistic, Standardized, choose_strength, moments_of
from contrastive_core.spaces import embedding_set
from contrastive_core.spaces.embedding_set import EmbeddingSet

N, D, CLASSES = 600, 8, 40


def rows(n: int = N, seed: int = 0, classes: int = CLASSES) -> EmbeddingSet:
    """Overlapping classes in columns of different sizes, far from 0."""
    draw = np.random.default_rng(seed)
    labels = np.r_[np.arange(classes), draw.integers(0, classes, n - classes)]
    x = np.random.default_rng(9).normal(size=(classes, D))[labels] + draw.normal(size=(n, D))
    return EmbeddingSet((x * np.logspace(1, -1, D) + 100).astype(np.float32), labels)


def small_blocks(patch: pytest.MonkeyPatch) -> None:
    for module in (silhouette, uniformity):
        patch.setattr(module, "BASE", 50)
        patch.setattr(module, "BLOCK", 20)
    patch.setattr(silhouette, "HELD", 70 * CLASSES)
    for module in (alignment, rankme, memory):
        patch.setattr(module, "BLOCK", 37)
    for module in (linear_probe, embedding_set):
        patch.setattr(module, "BLOCK", 45 * CLASSES)
    patch.setattr(linear_probe, "HELD", 0)


BLOCKWISE = ("silhouette", "uniformity", "alignment", "tolerance", "rankme", "alpha_req", "neighbor_stability")


@cases("name", BLOCKWISE)
def test_a_score_by_blocks_is_that_of_all_rows(name: str, monkeypatch) -> None:
    whole = metrics.create(name)(None, rows())
    small_blocks(monkeypatch)
    blockwise = metrics.create(name)(None, rows())
    assert blockwise.value == pytest.approx(whole.value, rel=1e-6)
    if whole.per_sample is not None:
        assert np.allclose(blockwise.per_sample, whole.per_sample, rtol=1e-5, atol=1e-6)
    assert "sample" not in whole.extras


def test_the_probe_by_blocks_is_that_of_all_rows(monkeypatch) -> None:
    train, test = rows(), rows(300, 1)
    train.labels[5:90] = -1
    whole = metrics.create("linear_probe", c=0.3)(train, test)
    small_blocks(monkeypatch)
    blockwise = metrics.create("linear_probe", c=0.3)(train, test)
    assert (blockwise.per_sample == whole.per_sample).mean() > 0.99
    assert 0.2 < whole.value < 0.9


@pytest.mark.parametrize("name", ["linear_probe", "silhouette", "uniformity"])
def test_no_tensor_grows_with_rows_and_classes_or_with_pairs(name: str, monkeypatch) -> None:
    small_blocks(monkeypatch)
    metric = metrics.create(name, c=1.0) if name == "linear_probe" else metrics.create(name)
    largest = []
    for n in (200, 400):
        with Largest() as made:
            metric(rows(n), rows(n, 1))
        largest.append(made.elements)
    assert largest[1] < 400 * CLASSES / 2
    held = 400 * D  # the rows themselves, which two of them have at length 1
    assert largest[0] == largest[1] or largest[1] <= held


def test_standardized_rows_are_those_of_scikit_learn_read_from_a_file(tmp_path: Path) -> None:
    from sklearn.preprocessing import StandardScaler

    whole = rows()
    whole.features[:, 2] = 7
    np.save(tmp_path / "x.npy", whole.features)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    index = np.flatnonzero(np.arange(N) % 3)
    x = Standardized(mapped, moments_of(mapped, index), torch.device("cpu"), index)
    expected = StandardScaler().fit_transform(whole.features[index].astype(np.float64))
    assert x.shape == expected.shape
    assert np.allclose(x[:].numpy(), expected, atol=1e-4)  # the mean is rounded, for all alike
    assert np.allclose(x[10:20].numpy(), expected[10:20], atol=1e-4)
    some = torch.tensor([3, 1, 200])
    assert np.allclose(x[some].numpy(), expected[some], atol=1e-4)


def test_a_first_guess_from_some_rows_leads_to_the_same_least(monkeypatch) -> None:
    whole = rows()
    x = torch.from_numpy(whole.features).double()
    x = (x - x.mean(0)) / x.std(0)
    y = torch.from_numpy(whole.labels)
    exact = Logistic(x, y, CLASSES).fit(1.0, tolerance=1e-9)
    for name, value in (("GUIDE", 50), ("GUIDES", 2), ("BLOCK", 45 * CLASSES)):
        monkeypatch.setattr(linear_probe, name, value)
    guided = Logistic(x, y, CLASSES).fit(1.0, tolerance=1e-9)
    assert abs(float(objective(guided, x, y, 1.0) - objective(exact, x, y, 1.0))) < 1e-10
    assert torch.allclose(guided[:-1], exact[:-1], atol=1e-5)


def test_a_class_that_no_drawn_row_has_is_still_fitted(monkeypatch) -> None:
    train = rows(N, 0, 8)
    train.labels[np.setdiff1d(np.arange(N), rows_of_sample(N, 300))[0]] = 8  # alone, and the last
    monkeypatch.setattr(linear_probe, "SAMPLE", 300)
    found = choose_strength(torch.from_numpy(train.features / 100), train.labels)
    assert found.weight is not None
    assert found.weight.shape == (D + 1, 9)
    assert found.sample == "300 of 600 training rows"
    assert metrics.create("linear_probe")(train, rows(200, 1, 8)).value is not None


def test_a_strength_from_a_sample_is_near_that_of_all(monkeypatch) -> None:
    train, test = rows(N, 0, 8), rows(300, 1, 8)
    whole = metrics.create("linear_probe")(train, test)
    monkeypatch.setattr(linear_probe, "SAMPLE", 400)
    sampled = metrics.create("linear_probe")(train, test)
    assert "sample" not in whole.extras
    assert sampled.extras["sample"] == "C by 400 of 600 training rows"
    assert abs(np.log10(sampled.extras["c"] / whole.extras["c"])) < 0.5
    assert sampled.value == pytest.approx(whole.value, abs=0.03)


def test_a_silhouette_of_some_rows_is_that_of_each_among_all(monkeypatch) -> None:
    whole = metrics.create("silhouette")(None, rows())
    monkeypatch.setattr(silhouette, "PAIRS", 100 * N)
    some = metrics.create("silhouette")(None, rows())
    drawn = np.isfinite(some.per_sample)
    assert drawn.sum() == 100
    assert some.extras["sample"] == "100 of 600 rows"
    assert np.allclose(some.per_sample[drawn], whole.per_sample[drawn], atol=1e-9)
    assert some.interval[0] < whole.value < some.interval[1]


def test_uniformity_of_a_sample_is_that_of_these_rows(monkeypatch) -> None:
    monkeypatch.setattr(uniformity, "SAMPLE", 200)
    some = metrics.create("uniformity")(None, rows())
    chosen = rows_of_sample(N, 200)
    assert some.value == metrics.create("uniformity")(None, rows().take(chosen)).value
    assert np.array_equal(np.flatnonzero(np.isfinite(some.per_sample)), chosen)
    assert some.extras["sample"] == "200 of 600 rows"
    assert some.extras["n"] == N


def test_a_sample_is_the_same_at_every_call() -> None:
    assert np.array_equal(rows_of_sample(5, 5), np.arange(5))
    chosen = rows_of_sample(1000, 10)
    assert np.array_equal(chosen, rows_of_sample(1000, 10))
    assert (np.diff(chosen) > 0).all()
    assert sample_text(10, 1000) == "10 of 1,000 rows"
    assert sample_text(10, 10) == ""


def test_problems_and_lengths_are_found_in_every_block(monkeypatch) -> None:
    monkeypatch.setattr(embedding_set, "BLOCK", 7 * D)
    found = rows()
    found.features[[0, 599]] = 0
    found.features[20, 3] = np.nan
    assert found.problems["zero"].tolist() == [0, 599]
    assert found.problems["not_finite"].tolist() == [20]
    expected = np.maximum(np.linalg.norm(found.features, axis=1), 1e-12)
    assert np.array_equal(found.lengths, expected, equal_nan=True)


def test_lidar_by_blocks_of_images_is_that_of_all(monkeypatch) -> None:
    views = np.random.default_rng(0).normal(size=(90, 3, 5)).astype(np.float32) + 7
    whole = lidar.discriminant_spectrum(views, 1e-4)
    monkeypatch.setattr(lidar, "BLOCK", 10 * 3 * 5)
    assert np.allclose(lidar.discriminant_spectrum(views, 1e-4), whole, rtol=1e-9)


@pytest.mark.parametrize("width", [4, 90])  # fewer columns than rows that teach, and more
def test_factors_of_drawn_rows_are_near_those_of_all(width: int, monkeypatch) -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(400, width)).astype(np.float32)
    known = {"size": x[:, 0] + 0.1 * draw.normal(size=400), "kind": (x[:, 1] > 0).astype(int)}
    parts = (slice(0, 300), slice(300, 400))
    train, test = (EmbeddingSet(x[part], columns={k: v[part] for k, v in known.items()}) for part in parts)
    whole = metrics.create("factors")(train, test)
    monkeypatch.setattr(factors, "MOST", 250)
    some = metrics.create("factors")(train, test)
    assert some.value == pytest.approx(whole.value, abs=0.1)
    assert some.extras["sample"] == "fitted on 250 of 300 training rows"
    assert "sample" not in whole.extras
    monkeypatch.setattr(type(metrics.create("factors")), "most", 60)
    fewer = metrics.create("factors")(train, test)
    assert fewer.extras["sample"] == "60 of 100 rows, fitted on 250 of 300 training rows"


def test_votes_counted_by_blocks_are_those_of_all_rows(monkeypatch) -> None:
    train, test = rows(), rows(200, seed=1)
    whole = metrics.create("knn")(train, test)
    monkeypatch.setattr(knn, "BLOCK", 1000)
    blockwise = metrics.create("knn")(train, test)
    assert np.array_equal(blockwise.arrays["predicted"], whole.arrays["predicted"])


def test_stability_of_approximate_neighbors_says_their_recall(monkeypatch) -> None:
    exact = metrics.create("neighbor_stability")(None, rows())
    assert "recall" not in exact.extras
    asked, recalls = [], iter([0.9, 0.75])

    def nearest(*args, approximate, **more):
        asked.append(approximate)
        return replace(neighbor_stability_nearest(*args, **more), recall=next(recalls))

    neighbor_stability_nearest = neighbor_stability.nearest
    monkeypatch.setattr(neighbor_stability, "nearest", nearest)
    told = metrics.create("neighbor_stability")(None, rows())
    assert [bool(approximate) for approximate in asked] == [True, True]
    assert (told.value, told.extras["recall"]) == (exact.value, 0.75)


@pytest.mark.parametrize("name", ["hubness", "purity", "neighbor_stability"])
def test_neighbors_of_many_rows_are_those_of_a_sample_that_is_said(name, monkeypatch) -> None:
    metric, every = metrics.create(name), rows()
    drawn = rows_of_sample(N, 200)
    some = metric(None, every.take(drawn))
    assert "sample" not in metric(None, every).extras
    monkeypatch.setattr(type(metric), "most", 200)
    told = metric(None, every)
    assert told.value == some.value
    assert told.extras["sample"] == "200 of 600 rows"
    assert np.array_equal(told.per_sample[drawn], some.per_sample)
    assert np.isnan(told.per_sample).sum() == 400


def test_of_many_test_rows_some_are_voted_on_and_the_rest_is_not_judged(monkeypatch) -> None:
    train, test = rows(), rows()
    whole = metrics.create("knn")(train, test)
    monkeypatch.setattr(type(metrics.create("knn")), "most", 200)
    monkeypatch.setattr(type(metrics.create("knn")), "drawn", 100)
    told, drawn = metrics.create("knn")(train, test), rows_of_sample(N, 100)
    assert told.extras["sample"] == "100 of 600 rows"
    assert told.extras["n"] == 100
    assert np.array_equal(told.per_sample[drawn], whole.per_sample[drawn])
    assert np.array_equal(told.arrays["predicted"][drawn], whole.arrays["predicted"][drawn])
    assert np.isnan(told.per_sample).sum() == (told.arrays["predicted"] == -1).sum() == 500
