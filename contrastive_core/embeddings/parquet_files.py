"""Tables of vectors in Parquet: read on Arrow's buffers, never as Python values.

The vectors go into float32 some rows at a time; what else is known of the rows is held whole. A few
kilobytes can hold a value a billion times: what the rows would take is asked before they are read,
and summed on the way, and texts stay an index into the different ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from contrastive_core.embeddings.table_columns import (
    BATCH,
    MAX_COLUMNS,
    Table,
    TableLimits,
    Texts,
    columns_provenance,
    vector_columns,
)
from contrastive_core.errors import UnusableEmbedding
from contrastive_core.messages import message

__all__ = ["read_parquet"]

MAX_ROWS = 20_000_000
BUFFER = 4 << 20  # bytes of a column that are read ahead: some files hold it all in one piece
USUAL = ("embedding", "embeddings", "features", "vector", "vectors", "emb")  # columns of vectors


def read_parquet(file: BinaryIO, path: Path, limits: TableLimits, leave_out: Sequence[str] = ()) -> Table:
    """Vectors, columns and, where `EmbeddingSet.save` wrote the file, their origin. `leave_out`:
    columns of numbers that are no part of the vectors."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.ParquetFile(file).schema_arrow
    texts = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    table = pq.ParquetFile(file, read_dictionary=texts, buffer_size=BUFFER)
    lists = _vector_column(schema)
    names = [f.name for f in schema if _is_column(f.type)]
    numbers = [f.name for f in schema if _is_number(f.type)]
    taken = [] if lists else vector_columns(numbers, names, path, leave_out)
    vectors = {lists, *taken}
    others = [name for name in names if name not in vectors]
    _check_size(table.metadata, len(taken), len(others), path, limits)
    columns = {name: _column(_read_column(table, name, path, limits)) for name in others}
    if lists:
        features = _lists(table, lists, path, limits)
    else:
        features = np.empty((table.metadata.num_rows, len(taken)), np.float32)
        for j, name in enumerate(taken):
            _fill(features[:, j], table, name)
    return features, columns, _provenance(schema.metadata or {}) | columns_provenance(taken)


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
    binary = types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    left_out = binary or types.is_nested(kind) or types.is_null(kind)
    return not left_out and not isinstance(kind, pa.BaseExtensionType)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _check_size(about: Any, numbers: int, others: int, path: Path, limits: TableLimits) -> None:
    """Refuse what would take too much memory, also where equal values are held once, by how many
    rows there are: to ask for more of a column ends the whole process where the file is damaged.

    Args: numbers: columns that are the vectors; others: further ones that are read.
    """
    n = about.num_rows
    if about.num_columns > MAX_COLUMNS or n > MAX_ROWS:
        raise UnusableEmbedding(
            message(
                "{name} has {n} rows and {num_columns} columns; at most {max_rows} and {max_columns} are read",
                name=path.name,
                n=f"{n:,}",
                num_columns=f"{about.num_columns:,}",
                max_rows=f"{MAX_ROWS:,}",
                max_columns=f"{MAX_COLUMNS:,}",
            )
        )
    for total, limit in ((4 * n * numbers, limits.vectors), (8 * n * others, limits.columns)):
        if total > limit:
            raise UnusableEmbedding(
                message(
                    "{name} would unpack to {total} bytes; at most {limit}",
                    name=path.name,
                    total=f"{total:,}",
                    limit=f"{limit:,}",
                )
            )


def _parts(table: Any, name: str) -> Iterator[Any]:
    """A column as it is decoded, some rows at a time; a tensor of a fixed shape as its numbers."""
    import pyarrow as pa

    for batch in table.iter_batches(batch_size=BATCH, columns=[name], use_threads=False):
        part = batch.column(0)
        yield part.storage if isinstance(part, pa.ExtensionArray) else part


def _read_column(table: Any, name: str, path: Path, limits: TableLimits) -> Any:
    """A column, in parts that are summed on the way: how much its texts hold stands only in the
    metadata of its chunks, on which damage ends the whole process."""
    import pyarrow as pa

    total, parts = 0, []
    for part in _parts(table, name):
        parts.append(part)
        total += part.nbytes
        if total > limits.columns:
            raise UnusableEmbedding(
                message(
                    "{name} would unpack to more than {columns} bytes", name=path.name, columns=f"{limits.columns:,}"
                )
            )
    return pa.chunked_array(parts, parts[0].type if parts else pa.null())


def _fill(target: np.ndarray, table: Any, name: str) -> None:
    """A column of numbers (n) float32, NaN where one is missing."""
    start = 0
    for part in _parts(table, name):
        target[start : start + len(part)] = part.to_numpy(zero_copy_only=False)
        start += len(part)


def _lists(table: Any, name: str, path: Path, limits: TableLimits) -> np.ndarray:
    """A column of lists of equal length as (n, d) float32, NaN where a number is missing."""
    import pyarrow.compute as pc

    features, start, missing = np.empty((0, 0), np.float32), 0, 0
    for part in _parts(table, name):
        lengths, stop = pc.list_value_length(part), start + len(part)
        low, high = (how(lengths).as_py() or 0 for how in (pc.min, pc.max))
        missing += part.null_count
        if start == 0:
            if 4 * high * table.metadata.num_rows > limits.vectors:
                raise UnusableEmbedding(
                    message(
                        "{name} would unpack to more than {vectors} bytes",
                        name=path.name,
                        vectors=f"{limits.vectors:,}",
                    )
                )
            features = np.empty((table.metadata.num_rows, high), np.float32)
        if not low == high == features.shape[1] and not missing:
            raise UnusableEmbedding(message("{name} has vectors of no or of different lengths", name=path.name))
        if not missing:
            features[start:stop] = part.flatten().to_numpy(zero_copy_only=False).reshape(-1, high)
        start = stop
    if missing:
        raise UnusableEmbedding(
            message("{name} has {missing} rows without a vector", name=path.name, missing=f"{missing:,}")
        )
    if not features.size:
        raise UnusableEmbedding(message("{name} has vectors of no or of different lengths", name=path.name))
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
