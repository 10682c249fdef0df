"""Planted errors come first in their lists: mislabeled, duplicate, outlier, false negative."""

import numpy as np
import pytest
from sample_sets import blobs, table_of

from contrastive_core.samples.issues import Pixels, find_issues
from contrastive_core.samples.sample_lists import LISTS
from contrastive_core.samples.sample_table import merged_table
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import joined
from contrastive_lab.samples.retrain import twins_to_drop


def precision(score: np.ndarray, planted: np.ndarray) -> float:
    order = np.argsort(-score)
    hits = np.isin(order, planted)
    return float((np.cumsum(hits) / (1 + np.arange(len(order))))[hits].mean())


def test_duplicates_and_outliers_are_found() -> None:
    rows, rng = blobs(), np.random.default_rng(2)
    x = rows.features.copy()
    x[10] = x[100] + 1e-4
    x[20] = x[200] + 1e-4
    x[30:33] = 5 * rng.normal(size=(3, 8))
    found = find_issues(EmbeddingSet(x, rows.labels))
    top = set(np.argsort(-found.scores["duplicate"])[:4].tolist())
    assert top == {10, 100, 20, 200}
    assert precision(found.scores["outlier"], np.arange(30, 33)) > 0.8


def test_augmented_views_make_wrong_labels_easier_to_tell_and_change_no_other_list() -> None:
    """Each row is its class's center plus what chance adds to one picture of it, which views of it average out."""
    rng, gained = np.random.default_rng(4), []
    for _ in range(3):
        truth = rng.integers(0, 5, 400)
        centers, wrong = rng.normal(size=(5, 8)), rng.choice(400, 40, replace=False)
        labels = truth.copy()
        labels[wrong] = (truth[wrong] + rng.integers(1, 5, 40)) % 5
        draws = (centers[truth] + 1.2 * rng.normal(size=(5, 400, 8))).astype(np.float32)
        rows = EmbeddingSet(draws[0], labels)
        views = (draws[1:] / np.linalg.norm(draws[1:], axis=2, keepdims=True)).mean(0)
        alone, together = find_issues(rows), find_issues(rows, view_features=views)
        scores = [one.scores for one in (alone, together)]
        gained.append(precision(scores[1]["mislabeled"], wrong) - precision(scores[0]["mislabeled"], wrong))
        for name in ("duplicate", "outlier", "false_negative"):
            np.testing.assert_array_equal(scores[1][name], scores[0][name])
        np.testing.assert_array_equal(together.nearest_negative, alone.nearest_negative)
    assert min(gained) > 0.1


def test_noise_that_the_encoder_maps_to_one_spot_is_seen_in_the_pixels() -> None:
    rows, rng = blobs(), np.random.default_rng(3)
    pixels = (rows.features @ rng.normal(size=(8, 40))).astype(np.float32)
    x, noise = rows.features.copy(), np.arange(25)
    x[noise] = 4 + 0.01 * rng.normal(size=(25, 8))
    pixels[noise] = 20 * rng.normal(size=(25, 40))
    planted = EmbeddingSet(x, rows.labels)
    assert precision(find_issues(planted).scores["outlier"], noise) < 0.5
    assert precision(find_issues(planted, pixels=(pixels, None)).scores["outlier"], noise) > 0.99


def test_a_leak_names_its_duplicate_in_the_other_split() -> None:
    train, test = blobs(120, 0), blobs(60, 1)
    x = train.features.copy()
    x[[7, 8]] = test.features[[40, 50]]
    test = EmbeddingSet(test.features, test.labels, tuple(f"test/{i}" for i in range(60)))
    table = table_of(EmbeddingSet(x, train.labels), "sup_con", other=test)
    assert set(np.argsort(-table.columns["duplicate"])[:2]) == {7, 8}
    assert table.extra["nearest_duplicate"][[7, 8]].tolist() == ["test/40", "test/50"]
    assert table.extra["leaked"][[7, 8]].all()


def test_copies_that_the_encoder_tells_apart_are_seen_in_the_pixels_brighter_or_not() -> None:
    train, test = blobs(120, 0), blobs(60, 1)
    rng = np.random.default_rng(4)
    pixels, others = (rng.random((n, 50)).astype(np.float32) for n in (120, 60))
    pixels[[7, 8]] = 0.5 * others[[40, 50]] + 0.3  # darker and flatter, in the other split
    pixels[9] = pixels[10]
    rows, far = (EmbeddingSet(x.features, x.labels) for x in (train, test))

    def first(**more: Pixels) -> set[int]:
        found = find_issues(rows, other=far, **more)
        return set(np.argsort(-found.scores["duplicate"])[:4].tolist())

    assert first() != {7, 8, 9, 10}
    assert first(pixels=(pixels, others)) == {7, 8, 9, 10}
    found = find_issues(rows, other=far, pixels=(pixels, others))
    assert found.nearest_duplicate[[7, 8, 9, 10]].tolist() == [40, 50, 10, 9]
    assert found.leaked[[7, 8, 9, 10]].tolist() == [True, True, False, False]
    assert found.nearness[[7, 8, 9, 10]] == pytest.approx(1, abs=2e-3)


def test_a_copy_is_told_from_what_is_only_very_near() -> None:
    x = blobs(200).features.copy()
    x[1], x[3] = x[0], x[2]
    x[3, 0] += 1e-4 * np.linalg.norm(x[2])
    nearness = find_issues(EmbeddingSet(x)).nearness
    assert nearness[[0, 1]].tolist() == [1, 1]
    assert (nearness[[2, 3]] < 1).all()
    assert (nearness[[2, 3]] > 0.999).all()


def test_a_space_whose_scores_vary_much_hides_no_outlier_of_the_other() -> None:
    rows, rng = blobs(400), np.random.default_rng(5)
    x = rows.features * 1.0
    x[::2] += rng.lognormal(0, 1.5, (200, 1)) * rng.normal(size=(200, 8))  # many far ones
    pixels = np.repeat(rng.random((4, 50)), 100, 0) + 0.05 * rng.random((400, 50))
    noise = np.array([1, 101, 201])
    pixels[noise] = rng.random((3, 50))
    planted = EmbeddingSet(x.astype(np.float32), rows.labels)
    found = find_issues(planted, pixels=(pixels.astype(np.float32), None))
    assert precision(found.scores["outlier"], noise) == 1


def test_rows_that_are_all_alike_have_finite_scores() -> None:
    alike = EmbeddingSet(np.ones((30, 4), np.float32))
    found = find_issues(alike, pixels=(np.full((30, 9), 0.5, np.float32), None))
    for name in ("duplicate", "outlier"):
        assert np.isfinite(found.scores[name]).all(), name


def test_false_negatives_follow_the_pairing() -> None:
    rows = blobs()
    alone, classes = (find_issues(rows, supervised=s).scores["false_negative"] for s in (False, True))
    assert (classes <= alone + 1e-6).all()
    assert (classes > -1).all()  # the nearest of another class, however far
    assert (classes < alone - 1e-3).mean() > 0.9  # nearest rows are of the own class


def test_rows_without_a_label_are_in_no_list_of_labels() -> None:
    rows = blobs()
    labels = rows.labels.copy()
    labels[:5] = -1
    found = find_issues(EmbeddingSet(rows.features, labels))
    assert np.isnan(found.scores["mislabeled"][:5]).all()
    assert np.isfinite(found.scores["mislabeled"][5:]).all()
    assert found.labels is not None
    np.testing.assert_allclose(found.labels.classes[5:].sum(1), 1, atol=1e-6)
    for predicted in found.labels.predicted.values():
        assert (predicted[5:] >= 0).all()


def test_a_partner_in_the_other_tower_is_no_false_negative_and_no_duplicate() -> None:
    a = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    images, texts = (EmbeddingSet(x, ids=tuple(f"{n}{i}" for i in range(40))) for n, x in (("i", a), ("t", a + 0.01)))
    issues = find_issues(joined(images, texts, ("image", "text")))
    assert np.isnan(issues.scores["false_negative"]).all()
    assert np.isnan(issues.scores["duplicate"]).all()
    assert np.isfinite(issues.scores["outlier"]).all()
    assert np.isfinite(find_issues(images).scores["false_negative"]).all()


def test_the_same_picture_with_two_labels_is_a_list_of_pairs() -> None:
    """Pairs stand together, and one of each is kept: the one whose label is likelier right."""
    rows = blobs()
    assert rows.labels is not None
    x, y = rows.features.copy(), rows.labels.copy()
    x[30], x[90], x[50] = x[0], x[60], x[10]
    y[30], y[90], y[50] = (y[0] + 1) % 3, (y[60] + 1) % 3, y[10]
    table = table_of(EmbeddingSet(x, y, rows.ids, classes=rows.classes), "sup_con")
    order = LISTS["two_labels"].order(table)
    assert sorted(order.tolist()) == [0, 30, 60, 90]
    assert {frozenset(order[:2].tolist()), frozenset(order[2:].tolist())} == {frozenset((0, 30)), frozenset((60, 90))}
    p = table.columns["mislabeled"]
    assert p[order[0]] >= p[order[1]]
    assert LISTS["two_labels"].suggests(table, 0) == rows.class_name(int(y[30]))  # type: ignore[misc]
    first = LISTS["duplicate"].order(table)[:6].tolist()
    assert all(table.twin[a] == b for a, b in zip(first[::2], first[1::2], strict=True))
    both = merged_table({"train": table})
    dropped = twins_to_drop(both, np.arange(len(both)), {50})
    assert 50 not in dropped  # it was decided
    for a, b in ((0, 30), (60, 90)):
        assert (a in dropped, b in dropped) == (p[a] > p[b], p[b] > p[a])
    assert set(dropped) <= {0, 10, 30, 60, 90}
