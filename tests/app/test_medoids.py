"""Rows that stand for a map: one in each crowd, the same ones each time, never two of one place."""

import numpy as np

from contrastive_lab.components.scatter.crowds import medoids


def test_every_crowd_has_one_and_the_largest_comes_first() -> None:
    rng = np.random.default_rng(0)
    centers = np.array([[x, y] for x in range(4) for y in range(3)], float) * 10
    sizes = [30 + 5 * k for k in range(12)]
    group = np.repeat(np.arange(12), sizes)
    xy = centers[group] + rng.normal(size=(len(group), 2)) * 0.3
    rows = medoids(xy, 12)
    assert sorted(group[rows]) == list(range(12))
    assert group[rows[0]] == 11
    for row in rows:  # it lies at the middle of its crowd
        own = xy[group == group[row]]
        away = np.linalg.norm(own - own.mean(0), axis=1)
        assert np.isclose(np.linalg.norm(xy[row] - own.mean(0)), away.min())
    assert (rows == medoids(xy, 12)).all()


def test_with_labels_each_is_of_the_class_that_its_crowd_has_most_of() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 50)
    xy = np.array([[0.0, 0], [10, 0]])[group] + rng.normal(size=(100, 2))
    labels = np.where(rng.random(100) < 0.7, group, -1)
    labels[medoids(xy, 2)] = [2, -1]  # what is nearest to the middles is the exception
    assert sorted(labels[medoids(xy, 2, labels)]) == [0, 1]


def test_few_equal_or_lost_points() -> None:
    assert medoids(np.zeros((100, 2))).tolist() == [0]
    assert sorted(medoids(np.array([[0, 0], [np.nan, 1], [2, 2.0]]))) == [0, 2]
    xy = np.random.default_rng(0).normal(size=(20_000, 2))
    rows = medoids(xy)
    assert len(set(rows.tolist())) == len(rows) == 40
