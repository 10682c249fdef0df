"""Tables that other programs open, and whose cells and headers no spreadsheet runs."""

import io
import itertools
import math
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from contrastive_core.base.atomic import writing

BLANK = "".join(map(chr, range(33))) + "\x7f\x85\xa0\u200b\u2060\u3000\ufeff"
BATCH = 20_000  # rows that are plain values at a time


def write_table(out: Path, columns: Mapping[str, Any]) -> None:
    """Write columns as `.parquet` or `.csv`, whole or not at all. Raises OSError."""
    import pandas

    is_csv = out.suffix == ".csv"
    frame = pandas.DataFrame({safe_cell(k) if is_csv else k: v for k, v in columns.items()})
    with writing(out, shared=True) as file:
        if is_csv:
            for name in frame:
                if frame[name].dtype.kind not in "biuf":  # numbers are no formulas
                    frame[name] = [safe_cell(v) for v in frame[name]]
            file.write(frame.to_csv(index=False).encode())
        else:
            frame.to_parquet(file, index=False)


def parquet_of(rows: Iterable[Mapping[str, Any]], types: Mapping[str, str]) -> bytes:
    """Rows of plain values as a Parquet file; a batch of them is asked for at a time, so that a million are never held.
    Args: types: of every column, in order, by Arrow's names: "int64", "float64", "string"."""
    import pyarrow
    from pyarrow import parquet

    aliases = {name: pyarrow.type_for_alias(kind) for name, kind in types.items()}
    schema, waiting, out = pyarrow.schema(aliases), iter(rows), io.BytesIO()
    with parquet.ParquetWriter(out, schema, compression="zstd") as file:
        while batch := list(itertools.islice(waiting, BATCH)):
            file.write_batch(pyarrow.RecordBatch.from_pylist(batch, schema=schema))
    return out.getvalue()


def safe_cell(value: Any) -> Any:
    """Text that a spreadsheet will not run as a formula."""
    text = str(value)
    # a spreadsheet skips what is in front, and takes a wide sign for a narrow one
    start = unicodedata.normalize("NFKC", text.lstrip(BLANK)[:1])
    is_formula = start.startswith(("=", "+", "-", "@")) or text.startswith(("\t", "\r", "\n"))
    return f"'{text}" if is_formula and not _number(text) else text


def _number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
