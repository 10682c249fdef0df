"""What was read of a file stays in memory until it changes; no spreadsheet runs the cells of a table."""

import io
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from contrastive_core.base import safe_files
from contrastive_core.base.errors import Damaged
from contrastive_core.base.safe_files import FileCache


def old(path: Path, text: str) -> Path:
    """A file that was written some time ago."""
    path.write_text(text)
    os.utime(path, ns=(0, time.time_ns() - int(60e9)))
    return path


def test_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    asked: list[str] = []

    def read(path: Path) -> str:
        asked.append(path.name)
        return path.read_text()

    remembered = FileCache(read, 2)
    a, b, c = (old(tmp_path / name, name) for name in "abc")
    assert [remembered(p) for p in (a, a, b, a)] == ["a", "a", "b", "a"]
    assert asked == ["a", "b"]
    old(a, "A")  # as long, by the same clock: but changed
    assert remembered(a) == "A"
    (tmp_path / "new").write_text("N")
    os.utime(tmp_path / "new", ns=(0, a.stat().st_mtime_ns))
    os.replace(tmp_path / "new", a)  # another file in its place
    assert remembered(a) == "N"
    assert [remembered(p) for p in (c, b)] == ["c", "b"]  # two are kept: b went as c came
    assert asked == ["a", "b", "a", "a", "c", "b"]


def test_what_was_just_written_is_read_again(tmp_path: Path) -> None:
    remembered, path = FileCache(Path.read_text, 9), tmp_path / "a"
    for text in "abc":
        path.write_text(text)
        assert remembered(path) == text


def test_what_cannot_be_read_is_not_kept(tmp_path: Path) -> None:
    def read(path: Path) -> str:
        if (text := path.read_text()) == "bad":
            raise Damaged("bad")
        return text

    remembered, path = FileCache(read, 9), tmp_path / "a"
    with pytest.raises(FileNotFoundError):
        remembered(path)
    for _ in range(2):
        with pytest.raises(Damaged):
            remembered(old(path, "bad"))
    assert remembered(old(path, "good")) == "good"
    path.unlink()
    with pytest.raises(FileNotFoundError):
        remembered(path)


# --- tables for other programs ---


TYPES = {"place": "int64", "id": "string", "score": "float64"}


def test_parquet_asks_for_a_batch_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_files, "BATCH", 3)
    given: list[int] = []

    def rows() -> Iterator[dict[str, Any]]:
        for i in range(8):
            given.append(i)
            yield {"place": i, "id": f"=é{i}", "score": math.nan if i == 4 else i / 2}

    data = safe_files.parquet_of(rows(), TYPES)
    file = parquet.ParquetFile(io.BytesIO(data))
    assert file.metadata.num_row_groups == 3
    read = file.read()
    assert {f.name: str(f.type) for f in read.schema} == {"place": "int64", "id": "string", "score": "double"}
    assert read["place"].to_pylist() == given == list(range(8))
    assert read["id"][7].as_py() == "=é7"  # no spreadsheet runs what lies in Parquet
    assert math.isnan(read["score"][4].as_py())


def test_parquet_without_rows_has_its_columns() -> None:
    read = parquet.read_table(io.BytesIO(safe_files.parquet_of([], TYPES)))
    assert (read.num_rows, read.column_names) == (0, list(TYPES))


@pytest.mark.parametrize("start", ["", " ", "\t", "\r", "\n", "\r\n ", "\u3000", "\ufeff", "\x00", "\xa0"])
@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\ufe62", "\u207a"])
def test_no_cell_starts_as_a_formula(start: str, sign: str) -> None:
    text = f"{start}{sign}HYPERLINK(1)"
    assert safe_files.safe_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["a", "", "a=1", " a", "\u4e2d", "-3", "+1e5", " -0.5", "\u2192"])
def test_other_cells_stay(text: str) -> None:
    assert safe_files.safe_cell(text) == text
