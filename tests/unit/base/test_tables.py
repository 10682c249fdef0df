"""Tables for other programs: Parquet in batches, and cells that no spreadsheet runs."""

import io
import math
from collections.abc import Iterator
from typing import Any

import pytest
from pyarrow import parquet

from contrastive_core.base import safe_files

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
