"""What the map sends and takes: rows, colors and keys."""

import numpy as np

from contrastive_lab.components.scatter import PALETTE, categories, pack_rows, rows_of
from contrastive_lab.components.shared.mount import component_key


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
