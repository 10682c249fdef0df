"""Readers of vector tables: Parquet, read from Arrow's buffers without Python values, and CSV.

Vectors are converted to float32 in batches of rows; other columns are read at once. A few kilobytes of Parquet can hold
a value a billion times, so the required memory is estimated before reading and counted during it, and texts stay
indices into the distinct ones."""

import contextlib
import json
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.messages import N_, message, printable, thousands
from contrastive_core.spaces import file_formats
from contrastive_core.spaces.embedding_set import Provenance, plain_provenance
from contrastive_core.spaces.file_formats import check_size
from contrastive_core.spaces.towers import tower_names

MAX_ROWS, MAX_COLUMNS = 20_000_000, 20_000
BATCH = 4096  # rows that are read at a time
DECODED = 64 << 20  # bytes of vectors that are decoded at a time
BUFFER = 4 << 20  # bytes of a Parquet column that are read ahead: some files hold it all in one piece
USUAL = ("embedding", "embeddings", "features", "vector", "vectors", "emb")  # columns of vectors
KNOWN = ("id", "ids", "label", "labels", "y", "class", "split", "embedding", "features")  # never part of a vector
NARROWEST = 3  # numbers in a vector of a series that is one of two
Series = dict[str, list[str]]  # the columns of vectors, in their order, by the name of a tower; "" of one tower
Table = tuple[dict[str, np.ndarray], dict[str, np.ndarray], Provenance]  # vectors (n, d) by tower, columns (n), origin


def read_csv(file: BinaryIO, path: Path, leave_out: Sequence[str] = (), batch: int | None = None) -> Table:
    """Return vectors and columns of a CSV file with a header, `batch` rows at a time; `leave_out` as for Parquet."""
    series: Series = {}
    rest: list[pd.DataFrame] = []
    features, n, held = np.empty((0, 0), np.float32), 0, 0
    for frame in pd.read_csv(file, low_memory=False, chunksize=batch or BATCH):
        frame.columns = frame.columns.astype(str)
        if not rest:
            file_formats.check_rows(len(frame), path)
            kinds = _kinds(frame, path)
            series = _vector_columns([k for k, v in kinds.items() if v == "number"], kinds, path, leave_out)
            taken = [name for names in series.values() for name in names]
        elif _kinds(frame, path) != kinds:  # a text below numbers: what a column is, only all rows tell
            if (size := os.fstat(file.fileno()).st_size) > file_formats.LIMIT:
                template = N_(
                    "{name} has a column with both numbers and text; such a table can have at most {columns} bytes, "
                    "this one has {size}"
                )
                sizes = thousands(columns=file_formats.LIMIT, size=size)
                raise UnusableEmbedding(template, name=path.name, **sizes)
            file.seek(0)
            return read_csv(file, path, leave_out, batch=size)  # more than it has rows
        rest.append(frame.drop(columns=taken))
        held += int(rest[-1].memory_usage(deep=False).sum())
        stop = n + len(frame)
        if held > file_formats.LIMIT or 4 * stop * len(taken) > file_formats.VECTORS:
            values = {"name": path.name, "stop": f"{stop:,}"}
            raise UnusableEmbedding("the table in {name} is too large: more than {stop} rows", **values)
        if stop > len(features):
            features.resize((stop * 5 // 4, len(taken)), refcheck=False)
        features[n:stop] = frame[taken].to_numpy(np.float32)
        n = stop
    file_formats.check_rows(n, path)
    features.resize((n, len(taken)), refcheck=False)
    others = pd.concat(rest)
    columns: dict[str, np.ndarray] = {}
    for name, column in others.items():
        if column.dtype.kind in "fiub":
            columns[name] = column.to_numpy()
        else:
            index, texts = pd.factorize(column)
            columns[name] = _texts(index, [*map(str, texts)], name, path)
    vectors, origin = _of_series(features, series)
    return vectors, columns, origin


def column_names(file: BinaryIO, path: Path) -> tuple[str, ...]:
    """Return the names of all columns and of all series."""
    if path.suffix.lower() == ".parquet":
        names = pq.ParquetFile(file).schema_arrow.names
    else:
        names = [*map(str, pd.read_csv(file, nrows=0).columns)]
    return (*names, *_numbered(names))


def _kinds(frame: pd.DataFrame, path: Path) -> dict[str, str]:
    """Return the kind of each column: numbers, yes or no, or other."""
    _check_counts(0, frame.shape[1], path)
    names = {"f": "number", "i": "number", "u": "number", "b": "bool"}
    return {name: names.get(dtype.kind, "text") for name, dtype in frame.dtypes.items()}


def _check_counts(rows: int, columns: int, path: Path) -> None:
    if rows > MAX_ROWS or columns > MAX_COLUMNS:
        counts = thousands(n=rows, columns=columns, max_rows=MAX_ROWS, max_columns=MAX_COLUMNS)
        text = N_("{name} has {n} rows and {columns} columns; at most {max_rows} and {max_columns} are read")
        raise UnusableEmbedding(text, name=path.name, **counts)


def _texts(index: np.ndarray, texts: Sequence[str], name: str, path: Path) -> np.ndarray:
    """Return the texts of rows (n) from indices into the distinct texts, -1 for none. Raises UnusableEmbedding if they
    would exceed the memory limit at the width of the longest."""
    width = max(1, min(file_formats.MAX_TEXT, max(map(len, texts), default=1)))
    if (size := 4 * width * max(len(texts), len(index))) > file_formats.LIMIT:
        names = {"name": path.name, "column": f"{printable(name, 80)!r}"}
        sizes = thousands(size=size, limit=file_formats.LIMIT)
        raise UnusableEmbedding(
            "{name}: the texts of {column} would take {size} bytes; at most {limit} are read", **names, **sizes
        )
    return np.array([*texts, ""], f"<U{width}")[index]  # longer ones are cut; -1 is the last


def read_parquet(file: BinaryIO, path: Path, leave_out: Sequence[str] = ()) -> Table:
    """Return vectors, columns and our own files' provenance. `leave_out`: number columns that are not vectors."""
    schema = pq.ParquetFile(file).schema_arrow
    texts = [f.name for f in schema if types.is_string(f.type) or types.is_large_string(f.type)]
    table = pq.ParquetFile(file, read_dictionary=texts, buffer_size=BUFFER)
    file_formats.check_rows(n := table.metadata.num_rows, path)
    lists = _list_columns([field for field in schema if field.name not in leave_out])
    no_columns = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_nested, types.is_null)
    plain = [f for f in schema if not isinstance(f.type, pa.BaseExtensionType)]
    names = [f.name for f in plain if not any(is_of(f.type) for is_of in no_columns)]
    numbers = [f.name for f in schema if _is_number(f.type)]
    series = {} if lists else _vector_columns(numbers, names, path, leave_out)
    taken = [name for columns in series.values() for name in columns]
    others = [name for name in names if name not in {*lists, *taken}]
    _check_counts(n, table.metadata.num_columns, path)
    # by how many rows there are: to ask for more of a column ends the whole process where the file is damaged
    check_size(4 * n * len(taken), file_formats.VECTORS, file, path)
    check_size(8 * n * len(others), file_formats.LIMIT, file, path)
    columns = {name: _column(table, name, file, path) for name in others}
    if lists:
        towers = tower_names(lists) if len(lists) > 1 else ("",)
        origin, vectors = (
            Provenance(),
            {k: _lists(table, name, file, path) for k, name in zip(towers, lists, strict=True)},
        )
    else:
        features = np.empty((n, len(taken)), np.float32)
        for j, name in enumerate(taken):
            start = 0
            for part in _parts(table, name):
                features[start : start + len(part), j] = part.to_numpy(zero_copy_only=False)
                start += len(part)
        vectors, origin = _of_series(features, series)
    with contextlib.suppress(KeyError, ValueError, TypeError, AttributeError, RecursionError):
        stored = json.loads((schema.metadata or {})[b"contrastive_core"])
        origin = plain_provenance(stored["provenance"]) | origin
    return vectors, columns, origin


def _of_series(features: np.ndarray, series: Series) -> tuple[dict[str, np.ndarray], Provenance]:
    """Split vectors (n, d + d) into those (n, d) of each tower; return them and the names of their columns."""
    columns = [printable(name, 80) for names in series.values() for name in names]
    return dict(zip(series, np.split(features, len(series), axis=1), strict=True)), {"columns": columns}


def _list_columns(fields: Sequence[pa.Field]) -> list[str]:
    """Choose the column of vectors: one with a usual name, else one of floating-point numbers (not token ids), else the
    first. Two floating-point columns without a usual name are two towers."""
    ranked: list[tuple[int, bool, str]] = []  # place of the usual name, whether of whole numbers, name
    for field in fields:
        kind = _storage(field.type)
        is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        if is_list and _is_number(kind.value_type):
            name = field.name.lower()
            usual = USUAL.index(name) if name in USUAL else len(USUAL)
            ranked.append((usual, not types.is_floating(kind.value_type), field.name))
    of_fractions = [name for _, is_whole, name in ranked if not is_whole]
    if len(of_fractions) == 2 and min(ranked)[0] == len(USUAL):
        return of_fractions
    return [min(ranked, key=lambda one: one[:2])[2]] if ranked else []


def _storage(kind: pa.DataType) -> pa.DataType:
    """Return the storage type of a column: a tensor of fixed shape is stored as a list of its numbers."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind))


def _parts(table: pq.ParquetFile, name: str, size: int | None = None) -> Iterator[pa.Array]:
    """Yield a column's decoded parts, `size` rows at a time; a tensor of fixed shape as its numbers."""
    for batch in table.iter_batches(batch_size=size or BATCH, columns=[name], use_threads=False):
        part = batch.column(0)
        yield part.storage if isinstance(part, pa.ExtensionArray) else part


def _column(table: pq.ParquetFile, name: str, file: BinaryIO, path: Path) -> np.ndarray:
    """Return a column: numbers unchanged, NaN for missing ones; everything else as texts."""
    total, parts = 0, []
    for part in _parts(table, name):
        parts.append(part)
        # on the way: how much texts hold stands only in their chunks' metadata, on which damage ends the process
        total += part.nbytes
        check_size(total, file_formats.LIMIT, file, path)
    values = pa.chunked_array(parts, parts[0].type if parts else pa.null())
    if _is_number(values.type) or (types.is_boolean(values.type) and not values.null_count):
        array = values.to_numpy()
        return array.astype(np.float32) if array.dtype == np.float16 else array
    if not types.is_dictionary(values.type):
        values = values.cast(pa.string()).dictionary_encode()
    values = values.combine_chunks()
    index = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return _texts(index, values.dictionary.cast(pa.string()).to_pylist(), name, path)


def _lists(table: pq.ParquetFile, name: str, file: BinaryIO, path: Path) -> np.ndarray:
    """Return a column of lists of equal length as (n, d) float32, NaN for missing numbers."""
    uneven = message("{name} has rows without a vector, or vectors of different lengths", name=path.name)
    n, start = table.metadata.num_rows, 0
    width = next((pc.max(pc.list_value_length(part)).as_py() or 0 for part in _parts(table, name, 1)), 0)
    check_size(4 * width * n, file_formats.VECTORS, file, path)  # before more than a row is decoded
    features = np.empty((n, width), np.float32)
    for part in _parts(table, name, max(1, min(BATCH, DECODED // max(1, 4 * width)))):
        if part.null_count or pc.unique(pc.list_value_length(part)).to_pylist() not in ([], [width]):
            raise UnusableEmbedding(uneven)
        stop = start + len(part)
        features[start:stop] = part.flatten().to_numpy(zero_copy_only=False).reshape(len(part), width)
        start = stop
    if not width:
        raise UnusableEmbedding(uneven)
    return features


def _vector_columns(numbers: Sequence[str], names: Collection[str], path: Path, leave_out: Sequence[str]) -> Series:
    """Choose the columns of vectors of a table without a column of lists: the numbered ones among the columns of
    numbers, or all of these. `names`: all columns."""
    numbered = _numbered(numbers)
    for name in leave_out:
        if name not in names and name not in numbered:
            raise UnusableEmbedding("{name} has no column {column}", name=path.name, column=f"{printable(name, 80)!r}")
    left_out = {*KNOWN, *leave_out, *(column for tower in leave_out for column in numbered.get(tower, ()))}
    if "x" in numbers and {"label", "labels", "class"} & set(names):  # then y is a coordinate
        left_out -= {"y"} - {*leave_out}
    numeric = [name for name in numbers if name not in left_out]
    numbered = _numbered(numeric)
    taken = max(numbered.values(), key=len, default=numeric)
    if len(numbered) == 2 and all(len(columns) == len(taken) >= NARROWEST for columns in numbered.values()):
        return numbered
    if len(taken) < 2:
        got = repr(printable(taken[0], 80)) if taken else 0
        raise UnusableEmbedding(file_formats.NARROW, name=path.name, got=got)
    return {"": taken}


def _numbered(names: Sequence[str]) -> Series:
    """Return every series d0, d1, … of columns in numeric order, by the name of a tower. A series has at least two
    columns and at least every second number."""
    series: dict[str, dict[int, str]] = {}
    for name in names:
        digits = len(name) - len(name.rstrip("0123456789"))
        if 0 < digits < 10:
            series.setdefault(name[:-digits], {})[int(name[-digits:])] = name
    full = {stem: s for stem, s in series.items() if len(s) > 1 and 2 * len(s) > max(s) - min(s)}
    ordered = [[columns[number] for number in sorted(columns)] for columns in full.values()]
    return dict(zip(tower_names([*full]), ordered, strict=True))
