"""Tables of vectors, Parquet and CSV: read on Arrow's buffers, never as Python values. Torch-free.

The vectors are one column of lists of equal length, or the numbered columns (d0, d1, …), or all
columns of numbers. A few kilobytes of
Parquet can hold a value a billion times: rows and bytes are summed from the file's metadata before
anything is read, and texts stay an index into the different ones.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from contrastive_core.errors import UnusableEmbedding
from contrastive_core.storage.regular import printable

__all__ = ["Texts", "csv", "parquet"]

MAX_ROWS = 20_000_000
MAX_COLUMNS = 20_000
BATCH = 4096  # rows that are decoded at a time
USUAL = ("embedding", "embeddings", "features", "vector", "vectors", "emb")  # columns of vectors
KNOWN = ("id", "ids", "label", "labels", "y", "class", "split", "embedding", "features")
Columns = dict[str, Any]  # arrays (n) of numbers, or Texts
Table = tuple[np.ndarray, Columns, dict[str, Any]]  # vectors (n, d), columns, origin


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of texts: the different ones, and each row's place among them (n)."""

    unique: Sequence[str]
    index: np.ndarray

    def __len__(self) -> int:
        return len(self.index)


def parquet(file: BinaryIO, path: Path, limit: int, leave_out: Sequence[str] = ()) -> Table:
    """Vectors, columns and, where `EmbeddingSet.save` wrote the file, their origin. `leave_out`:
    columns of numbers that are no part of the vectors."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.ParquetFile(file).schema_arrow
    texts = [
        f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)
    ]
    table = pq.ParquetFile(file, read_dictionary=texts)
    flat = sum(_is_column(f.type) for f in schema)
    _check_metadata(table.metadata, flat, path, limit)
    vectors = _vector_column(schema)
    names = [f.name for f in schema if f.name == vectors or _is_column(f.type)]
    features, columns = None, {}
    for name in names:
        values = _read_column(table, name, path, limit)
        if name == vectors:
            features = _lists(values, path)
        else:
            columns[name] = _column(values)
    features, taken = _with_vectors(features, columns, path, leave_out)
    return features, columns, _provenance(schema.metadata or {}) | taken


def _vector_column(schema: Any) -> str | None:
    """The column of vectors: of several the one with a usual name, else of fractions, which token
    numbers and lists of neighbors are not; else the first."""
    import pyarrow as pa

    lists = [f for f in schema if _is_vector(f.type)]

    def rank(field: Any) -> tuple[int, bool]:
        name = field.name.lower()
        usual = USUAL.index(name) if name in USUAL else len(USUAL)
        return usual, not pa.types.is_floating(_stored(field.type).value_type)

    return min(lists, key=rank).name if lists else None


def _stored(kind: Any) -> Any:
    """The type that a column is stored as: a tensor of a fixed shape is a list of its numbers."""
    import pyarrow as pa

    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _is_vector(kind: Any) -> bool:
    import pyarrow as pa

    kind = _stored(kind)
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not listed and not pa.types.is_fixed_size_list(kind):
        return False
    return bool(pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))


def _is_column(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    binary = (
        types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    )
    left_out = binary or types.is_nested(kind) or types.is_null(kind)
    return not left_out and not isinstance(kind, pa.BaseExtensionType)


def _check_metadata(about: Any, flat: int, path: Path, limit: int) -> None:
    """Refuse what would take too much memory, also where equal values are held once.

    Args: flat: how many columns hold one value a row.
    """
    if about.num_columns > MAX_COLUMNS or about.num_rows > MAX_ROWS:
        raise UnusableEmbedding(
            f"{path.name} has {about.num_rows:,} rows and {about.num_columns:,} columns; at most "
            f"{MAX_ROWS:,} and {MAX_COLUMNS:,} are read"
        )
    stored = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    total = max(stored, 8 * about.num_rows * flat)
    if total > limit:
        raise UnusableEmbedding(f"{path.name} would unpack to {total:,} bytes; at most {limit:,}")


def _read_column(table: Any, name: str, path: Path, limit: int) -> Any:
    """A column, in parts that are summed on the way: how many numbers its lists hold stands only
    in the metadata of its chunks, on which damage ends the whole process."""
    import pyarrow as pa

    total, parts = 0, []
    for batch in table.iter_batches(batch_size=BATCH, columns=[name], use_threads=False):
        part = batch.column(0)
        parts.append(part.storage if isinstance(part, pa.ExtensionArray) else part)
        total += parts[-1].nbytes
        if total > limit:
            raise UnusableEmbedding(f"{path.name} would unpack to more than {limit:,} bytes")
    return pa.chunked_array(parts)


def _lists(values: Any, path: Path) -> np.ndarray:
    """A column of lists of equal length as (n, d) float32, without a Python value for each."""
    import pyarrow.compute as pc

    if values.null_count:
        raise UnusableEmbedding(f"{path.name} has {values.null_count:,} rows without a vector")
    lengths = pc.list_value_length(values)
    width = (pc.min(lengths).as_py() or 0) if len(values) else 0
    if not width or pc.max(lengths).as_py() != width:
        raise UnusableEmbedding(f"{path.name} has vectors of no or of different lengths")
    features = np.empty((len(values), width), np.float32)
    start = 0
    for chunk in values.chunks:
        numbers = chunk.flatten().to_numpy(zero_copy_only=False)  # NaN where one is missing
        features[start : start + len(chunk)] = numbers.reshape(-1, width)
        start += len(chunk)
    return features


def _column(values: Any) -> Any:
    """Numbers as an array; everything else as different texts and an index into them."""
    import pyarrow as pa

    kind = values.type
    boolean = pa.types.is_boolean(kind) and not values.null_count
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or boolean:
        array = values.to_numpy()  # NaN where a number is missing
        return array.astype(np.float32) if array.dtype == np.float16 else array
    if not pa.types.is_dictionary(kind):
        values = values.cast(pa.string()).dictionary_encode()
    values = values.unify_dictionaries()
    if not values.num_chunks:
        return Texts([""], np.zeros(0, np.int64))
    texts = ["", *values.chunk(0).dictionary.cast(pa.string()).to_pylist()]
    index = [c.indices.fill_null(-1).to_numpy(zero_copy_only=False) for c in values.chunks]
    return Texts(texts, np.concatenate(index).astype(np.int64) + 1)


def _provenance(metadata: dict[bytes, bytes]) -> dict[str, Any]:
    try:
        return dict(json.loads(metadata[b"contrastive_core"])["provenance"])
    except (KeyError, ValueError, TypeError, RecursionError):
        return {}


def csv(file: BinaryIO, path: Path, limit: int, leave_out: Sequence[str] = ()) -> Table:
    """Vectors and columns of a CSV file with a line of names. `leave_out`: as of `parquet`."""
    import pandas as pd

    frame = pd.read_csv(file, low_memory=False)
    if frame.shape[1] > MAX_COLUMNS or frame.memory_usage(deep=False).sum() > limit:
        raise UnusableEmbedding(f"{path.name} is too large a table: {frame.shape}")
    columns: Columns = {}
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind in "fiub":
            columns[str(name)] = column.to_numpy()
        else:
            index, texts = pd.factorize(column)
            columns[str(name)] = Texts(["", *map(str, texts)], index + 1)
    features, taken = _with_vectors(None, columns, path, leave_out)
    return features, columns, taken


def _with_vectors(
    features: np.ndarray | None, columns: Columns, path: Path, leave_out: Sequence[str] = ()
) -> tuple[np.ndarray, dict[str, Any]]:
    """The vectors, and which columns they are; where no column of lists holds them, the numbered
    ones among the columns of numbers, or all of these, taken out of `columns`."""
    if features is not None:
        return features, {}
    for name in leave_out:
        if name not in columns:
            raise UnusableEmbedding(f"{path.name} has no column {printable(name, 80)!r}")
    numeric = [
        name
        for name, values in columns.items()
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiu"
        and name not in (*KNOWN, *leave_out)
    ]  # fmt: skip
    if not numeric:
        raise UnusableEmbedding(f"{path.name} has no columns of numbers to take as vectors")
    taken = _numbered(numeric) or numeric
    if len(taken) < 2:
        raise UnusableEmbedding(
            f"{path.name} has one column of numbers that can be a vector, "
            f"{printable(taken[0], 80)!r}; a vector takes two or more"
        )
    features = np.empty((len(columns[taken[0]]), len(taken)), np.float32)
    for j, name in enumerate(taken):
        features[:, j] = columns.pop(name)
    return features, {"columns": [printable(name, 80) for name in taken]}


def _numbered(names: Sequence[str]) -> list[str]:
    """The longest series d0, d1, … of columns, in the order of their numbers; [] where there is
    none: a series has two columns or more, and at least every second of its numbers."""
    series: dict[str, dict[int, str]] = {}
    for name in names:
        digits = len(name) - len(name.rstrip("0123456789"))
        if 0 < digits < 10:
            series.setdefault(name[:-digits], {})[int(name[-digits:])] = name
    full = [s for s in series.values() if len(s) > 1 and 2 * len(s) > max(s) - min(s)]
    longest = max(full, key=len, default={})
    return [longest[number] for number in sorted(longest)]
