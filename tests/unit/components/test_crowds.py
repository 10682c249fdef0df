"""Names of crowds on a map: one for each group of a class, none where no class is the majority."""

import numpy as np

from contrastive_lab.components.scatter.crowds import MAJORITY, crowds

RNG = np.random.default_rng(0)


def blob(x: float, y: float, n: int) -> np.ndarray:
    return np.array([x, y]) + 0.3 * RNG.standard_normal((n, 2))


def test_a_class_in_two_places_is_named_twice_above_its_points() -> None:
    xy = np.concatenate([blob(0, 0, 200), blob(10, 0, 100), blob(5, 8, 150)])
    labels = np.repeat([0, 0, 1], [200, 100, 150])
    found = crowds(xy, labels)
    assert [crowd[1:] for crowd in found] == [(0, 1.0, -1), (1, 1.0, -1), (0, 1.0, -1)]  # the largest first
    for row, label, _share, _other in found:
        near = np.linalg.norm(xy - xy[row], axis=1) < 2
        assert (labels[near] == label).all()
        assert xy[row, 1] > np.median(xy[near, 1])
        assert abs(xy[row, 0] - np.median(xy[near, 0])) < 0.3


def test_a_mixed_crowd_has_its_majority_with_its_share_or_no_name() -> None:
    xy = np.concatenate([blob(0, 0, 400), blob(10, 10, 400)])
    labels = np.concatenate([np.arange(400) % 4 == 0, np.arange(400) % 2]).astype(np.int64)
    found = crowds(xy, labels)
    (_row, label, share, other), *_more = (crowd for crowd in found if crowd[0] < 400)
    assert (label, other) == (0, 1)
    assert 0.7 < share < 0.9
    assert all(share > MAJORITY for _row, _label, share, _other in found)


def test_points_without_a_label_and_single_points_are_no_crowd() -> None:
    xy = np.concatenate([blob(0, 0, 100), [[50.0, 50.0]]])
    assert crowds(xy, np.concatenate([np.full(100, -1), [3]])) == []
    assert len(crowds(np.zeros((10, 2)), np.zeros(10, np.int64))) == 1  # all in one place
