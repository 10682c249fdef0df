"""Which columns of a table are its vectors, and what is said of files that hold none."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import cases

from contrastive_core.base.errors import Damaged, UnusableEmbedding
from contrastive_core.spaces import file_formats, loaded_vectors, tables

X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
LABELS = np.arange(12) % 3


def with_series(folder: Path, prefix: str = "d") -> Path:
    table = pd.DataFrame({f"{prefix}{j}": X[:, j] for j in range(3)})
    table.insert(1, "price", np.arange(12.0))
    table["label"], table["source"] = LABELS, "web"
    table.to_csv(folder / "mine.csv", index=False)
    return folder / "mine.csv"


@cases("prefix", ["d", "f_", "", "x 0"])
def test_numbered_columns_are_the_vectors_and_others_are_kept_to_color_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    monkeypatch.setenv("CONTRASTIVE_LAB_HOME", str(tmp_path / "home"))
    path = with_series(tmp_path, prefix)
    rows = file_formats.read(path)
    np.testing.assert_allclose(rows.features, X)
    np.testing.assert_array_equal(rows.columns["price"], np.arange(12.0))
    note = loaded_vectors.about(loaded_vectors.open_vectors(path, path.name))["said"]
    assert f"The vectors are 3 columns, {prefix}0, {prefix}1, {prefix}2; with labels" in note
    assert "further columns to color by: 2." in note


def test_without_a_series_all_numbers_are_taken_but_those_left_out(tmp_path: Path) -> None:
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(price=np.arange(12.0))
    table.to_csv(tmp_path / "mine.csv", index=False)
    assert file_formats.read(tmp_path / "mine.csv").width == 4
    rows = file_formats.read(tmp_path / "mine.csv", leave_out=["price"])
    np.testing.assert_allclose(rows.features, X, rtol=1e-6)
    assert list(rows.columns) == ["price"]
    with pytest.raises(UnusableEmbedding, match="no column 'prize'"):
        file_formats.read(tmp_path / "mine.csv", leave_out=["prize"])


def test_files_that_hold_no_vectors_say_so(tmp_path: Path) -> None:
    pd.DataFrame({"name": ["a", "b"], "price": [1.5, 2]}).to_csv(tmp_path / "m.csv", index=False)
    np.save(tmp_path / "m.npy", X[:, :1])
    np.save(tmp_path / "labels.npy", LABELS)
    for name in ("text.npy", "m.txt"):
        (tmp_path / name).write_text("hello")
    for ending, columns in product(("csv", "parquet"), (3, 1)):
        empty = pd.DataFrame(X[:0, :columns], columns=["d0", "d1", "d2"][:columns])
        path = tmp_path / f"empty{columns}.{ending}"
        empty.to_csv(path, index=False) if ending == "csv" else empty.to_parquet(path)
    sentences = {
        "m.csv": "two or more columns of numbers as vectors; got 'price'",
        "m.npy": "two or more columns of numbers as vectors; got 1",
        "m.txt": "vector files must end in",
        "text.npy": r"text\.npy does not begin like a \.npy file",
        "labels.npy": r"in the same \.npz",
        **dict.fromkeys(("empty3.csv", "empty1.csv", "empty3.parquet", "empty1.parquet"), "has no rows"),
    }
    for name, sentence in sentences.items():
        with pytest.raises((UnusableEmbedding, Damaged), match=sentence):
            file_formats.read(tmp_path / name)


@cases("ending", ["csv", "parquet"])
@cases("rows_at_once", [1, 5, 12, 100])
def test_a_table_is_the_same_in_parts_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, rows_at_once: int
) -> None:
    table = pd.DataFrame(X.astype(np.float64), columns=["d0", "d1", "d2"])
    table.loc[7, "d1"] = np.nan
    table["whole"] = [1.5, *range(11)]  # whole numbers but for the first
    table["price"], table["source"] = np.arange(12), list("abcabcabcabc")
    table["label"] = LABELS
    path = tmp_path / f"mine.{ending}"
    table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
    monkeypatch.setattr(tables, "BATCH", rows_at_once)
    rows = file_formats.read(path)
    expected = X.copy()
    expected[7, 1] = np.nan
    np.testing.assert_allclose(rows.features, expected, rtol=1e-6)
    assert rows.features.dtype == np.float32
    assert rows.features.shape == (12, 3)
    np.testing.assert_array_equal(rows.labels, LABELS)
    np.testing.assert_array_equal(rows.columns["whole"], [1.5, *range(11)])
    np.testing.assert_array_equal(rows.columns["price"], np.arange(12))
    assert "".join(rows.columns["source"]) == "abcabcabcabc"


@pytest.mark.parametrize("column", ["d1", "note", "flag"])
def test_a_column_that_turns_to_text_below_is_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    table = pd.DataFrame(X, columns=["d0", "d1", "d2"], dtype=object)
    table["note"], table["flag"] = np.arange(12).astype(object), True
    table[column] = table[column].astype(object)
    table.loc[9, column] = "none"
    path = tmp_path / "mine.csv"
    table.to_csv(path, index=False)
    at_once = file_formats.read(path)
    monkeypatch.setattr(tables, "BATCH", 4)
    rows = file_formats.read(path)
    assert rows.columns[column].dtype.kind == "U"
    assert rows.columns[column][9] == "none"
    assert rows.width == at_once.width == (2 if column == "d1" else 3)
    np.testing.assert_array_equal(rows.features, at_once.features)
    np.testing.assert_array_equal(rows.columns[column], at_once.columns[column])
    monkeypatch.setattr(file_formats, "LIMIT", 700)
    with pytest.raises(UnusableEmbedding, match="a column with both numbers and text"):
        file_formats.read(path)


@pytest.mark.parametrize(("head", "width"), [("x,y,label", 2), ("a,b,y", 2), ("a,b,y,class", 2), ("x,a,y", 2)])
def test_y_is_a_coordinate_beside_x_and_a_column_of_labels(tmp_path: Path, head: str, width: int) -> None:
    path = tmp_path / "points.csv"
    lines = [",".join(str((i + j) % 2) for j in range(head.count(",") + 1)) for i in range(6)]
    path.write_text("\n".join([head, *lines]))
    rows = file_formats.read(path)
    assert (rows.features.shape, rows.labels is not None) == ((6, width), True)
