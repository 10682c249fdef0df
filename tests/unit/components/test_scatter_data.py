"""What the map sends and takes: rows, colors and keys. Names of crowds: one for each group of a class, none where no
class is the majority. Rows that stand for a map: one in each crowd, the same ones each time, never two of one place."""

import numpy as np

from contrastive_lab.components.scatter import MAJORITY, PALETTE, categories, crowds, medoids, pack_rows, rows_of
from contrastive_lab.components.shared.mount import component_key

# --- rows ---


def test_rows_and_colors_in_python() -> None:
    assert rows_of(None).tolist() == []
    assert rows_of({"rows": [4, 1]}).tolist() == [4, 1]
    assert rows_of({"bits": "BQAB"}).tolist() == [0, 2, 16]
    assert rows_of({"runs": "AgAAAAMAAAAJAAAAAQAAAA=="}).tolist() == [2, 3, 4, 9]
    groups, names, palette = categories(np.array([0, 1, -1]), ["a", "b"], 3, PALETTE)
    assert groups.tolist() == [0, 1, 2]
    assert names == ["a", "b", "no label"]
    assert palette[2] not in PALETTE  # also where colors are used over again
    assert categories(np.array([0, 1, -1]), ["a", "b"], 3, PALETTE[:2])[2][2] == palette[2]
    for count, none in ((255, 0), (254, 1), (300, 0), (1000, 7)):
        color = np.concatenate([np.arange(count), np.full(none, -1)])
        groups, names, palette = categories(color, [f"c{i}" for i in range(count)], count, PALETTE)
        assert len(names) == len(palette) == 255
        seen = [names[g] for g in groups[:count]]
        alone = 255 - bool(none) - (count + bool(none) > 255)
        assert seen[:alone] == [f"c{i}" for i in range(alone)]
        assert set(seen[alone:]) <= {f"{count - alone:,} more classes"}
        assert {names[g] for g in groups[count:]} <= {"no label"}
    groups, names, palette = categories(np.array([0.0, np.nan, 1.0, np.inf]), (), 4, PALETTE)
    assert len(names) == len(palette) == 9
    assert groups.tolist()[1] == 8
    assert names[8] == "no value"


def test_many_rows_travel_as_runs_or_bits_and_come_back() -> None:
    n = 1_000_000
    for rows, form, most in (
        ([7, 3, 5], "rows", 100),
        (range(200_000, 900_000), "runs", 20),
        (range(0, n, 2), "bits", 170_000),
        ([*range(600), n - 1], "runs", 40),
        (range(n), "runs", 20),
    ):
        packed = pack_rows(list(rows), n)
        assert list(packed) == [form]
        assert len(packed[form]) < most
        assert rows_of(packed).tolist() == list(rows)


def test_keys_of_parts_are_plain_and_differ() -> None:
    assert component_key("map-digits test") == "map-digits test"
    keys = {component_key(text) for text in ("a__b", "a___b", "__", "a/b", "a" * 100)}
    assert len(keys) == 5
    assert all("__" not in key for key in keys)


# --- crowds and medoids ---


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
