"""Vectors from elsewhere: `.npy`, `.npz`, `.parquet`, `.csv`. Nothing in them is trusted.

No pickle is opened; sizes are summed before anything is unpacked; a header that promises more than
the file holds is refused. In a table the vectors are one list column, or all numeric columns; `id`,
`label`, `class` and `split` are known by name, what else is text or number becomes a column.
Pictures that come along are read by attached.py.
"""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.distributed.partition import part_of
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.errors import Damaged, UnusableEmbedding
from contrastive_core.storage import records

__all__ = ["ENDINGS", "read"]

ENDINGS = (".npy", ".npz", ".parquet", ".csv")
LIMIT = 2 << 30  # bytes that a file may hold, or unpack to
Part = tuple[int, int]  # (i, of): the i-th of so many equal parts of the rows
TEXT = 500  # characters of a text that are kept
KNOWN = ("id", "label", "class", "split", "embedding", "features")


def read(path: str | Path, part: Part = (0, 1)) -> EmbeddingSet:
    """An `EmbeddingSet` from a file.

    Args: part: only these rows, as they stand in the whole. Of `.npy` and `.npz` no other vector
        comes into memory; a table is read whole, then cut.
    Raises: UnusableEmbedding or Damaged with a sentence; FileNotFoundError.
    """
    path = Path(path)
    if path.suffix not in ENDINGS:
        raise UnusableEmbedding(f"vectors are read from {', '.join(ENDINGS)}; got {path.name!r}")
    size = path.stat().st_size
    if size > LIMIT:
        raise UnusableEmbedding(f"{path.name} has {size:,} bytes; at most {LIMIT:,} are read")
    try:
        if part[1] > 1:
            return _read_part(path, part)
        found = {".npy": _npy, ".npz": _npz, ".parquet": _parquet, ".csv": _csv}[path.suffix](path)
    except (UnusableEmbedding, Damaged):
        raise
    except MemoryError:
        raise UnusableEmbedding(f"{path.name} promises more than memory holds") from None
    except Exception as error:
        raise Damaged(f"{path.name} cannot be read: {type(error).__name__}: {error}") from None
    return found


def _npy(path: Path) -> EmbeddingSet:
    with path.open("rb") as file:
        shape, _, dtype = _header(file, path)
        _check_shape(path, shape, dtype, os.fstat(file.fileno()).st_size)
    return EmbeddingSet(_floats(np.load(path, allow_pickle=False), path))


def _npz(path: Path) -> EmbeddingSet:
    arrays = records.read_npz(path, LIMIT)
    if "meta" in arrays and "features" in arrays:
        return EmbeddingSet.from_arrays(arrays)
    name = _widest({k: (v.shape, v.dtype) for k, v in arrays.items()}, path)
    features = _floats(arrays.pop(name), path)
    return _with_columns(features, {k: v for k, v in arrays.items() if v.ndim == 1}, path)


def _widest(known: dict[str, tuple[tuple[int, ...], np.dtype]], path: Path) -> str:
    """Which of the arrays, by shape and type, holds the vectors."""
    wide = [k for k, (shape, dtype) in known.items() if len(shape) == 2 and dtype.kind in "fiu"]
    if not wide:
        raise UnusableEmbedding(f"{path.name} has no array (n, d) of numbers")
    usual = ("features", "embeddings", "embedding", "x", "z")
    return next((k for k in usual if k in wide), wide[0])


def _read_part(path: Path, part: Part) -> EmbeddingSet:
    """What is known per row is read whole, so that classes get the same numbers in every part."""
    if path.suffix == ".npy":
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
        rows = part_of(len(vectors), part)
        features, known = _floats(vectors[rows], path), _stand_in(len(vectors), {}, path)
    elif path.suffix == ".npz":
        features, known, rows = _npz_part(path, part)
    else:
        whole = read(path)
        return whole.take(range(*part_of(len(whole), part).indices(len(whole))))
    if not len(features):
        raise UnusableEmbedding(f"{path.name} has fewer rows than there are processes")
    return replace(known.take(range(rows.start, rows.stop)), features=features)


def _npz_part(path: Path, part: Part) -> tuple[np.ndarray, EmbeddingSet, slice]:
    """A part's vectors, what is known of all rows, and which rows the part is."""
    with zipfile.ZipFile(path) as archive:
        if (total := sum(e.file_size for e in archive.infolist())) > LIMIT:
            raise UnusableEmbedding(f"{path.name} would unpack to {total:,} bytes")
        heads = {}
        for entry in archive.namelist():
            with archive.open(entry) as file:
                heads[entry.removesuffix(".npy")] = _header(file, path)
        name = _widest({k: (shape, dtype) for k, (shape, _, dtype) in heads.items()}, path)
        (n, d), by_column, dtype = heads[name]
        rows = part_of(n, part)
        with archive.open(f"{name}.npy") as file:
            _header(file, path)
            if by_column:
                raise UnusableEmbedding(f"{path.name} holds its vectors by columns; save them anew")
            file.seek(rows.start * d * dtype.itemsize, os.SEEK_CUR)
            content = file.read((rows.stop - rows.start) * d * dtype.itemsize)
        features = _floats(np.frombuffer(content, dtype).reshape(-1, d).copy(), path)
    with np.load(path, allow_pickle=False) as arrays:
        others = {k: arrays[k] for k, (shape, _, _) in heads.items() if len(shape) == 1}
    return features, _stand_in(n, others, path), rows


def _stand_in(n: int, arrays: dict[str, np.ndarray], path: Path) -> EmbeddingSet:
    """What is known of n rows, with vectors of no meaning."""
    nothing = np.zeros((n, 1), np.float32)
    if "meta" in arrays:
        return EmbeddingSet.from_arrays({**arrays, "features": nothing})
    return _with_columns(nothing, arrays, path)


def _header(file: Any, path: Path) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether by columns, and type of the array that a `.npy` file starts to tell of."""
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise UnusableEmbedding(f"{path.name} is of a version of .npy that is not known")
    shape, by_column, dtype = readers[version](file)
    return shape, by_column, dtype


def _parquet(path: Path) -> EmbeddingSet:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    if (total := _unpacked(file.metadata)) > LIMIT:
        raise UnusableEmbedding(f"{path.name} would unpack to {total:,} bytes; at most {LIMIT:,}")
    table = file.read()
    columns: dict[str, np.ndarray] = {}
    features = None
    for name in table.column_names:
        column = table.column(name)
        kind = str(column.type)
        if ("list" in kind) and features is None:
            features = np.stack([np.asarray(v, np.float32) for v in column.to_pylist()])
        elif "list" not in kind and "struct" not in kind and "binary" not in kind:
            columns[name] = column.to_numpy(zero_copy_only=False)
    return _told(_from_table(features, columns, path), table.schema.metadata or {})


def _told(rows: EmbeddingSet, metadata: dict[bytes, bytes]) -> EmbeddingSet:
    """With the origin that `EmbeddingSet.save` wrote into a Parquet file, if it is there."""
    try:
        about = json.loads(metadata[b"contrastive_core"])
        return replace(rows, provenance=dict(about["provenance"]))
    except (KeyError, ValueError, TypeError):
        return rows


def _unpacked(about: Any) -> int:
    """Bytes that a Parquet file takes in memory: also where equal values are held once."""
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    values = sum(g.column(j).num_values for g in groups for j in range(g.num_columns))
    return max(sum(g.total_byte_size for g in groups), 8 * values)


def _csv(path: Path) -> EmbeddingSet:
    import pandas as pd

    frame = pd.read_csv(path)
    return _from_table(None, {str(c): frame[c].to_numpy() for c in frame.columns}, path)


def _from_table(
    features: np.ndarray | None, columns: dict[str, np.ndarray], path: Path
) -> EmbeddingSet:
    if features is None:
        numeric = [c for c, v in columns.items() if v.dtype.kind in "fiu" and c not in KNOWN]
        if not numeric:
            raise UnusableEmbedding(f"{path.name} has no columns of numbers to take as vectors")
        features = np.stack([columns.pop(c) for c in numeric], axis=1)
    return _with_columns(_floats(features, path), columns, path)


def _with_columns(features: np.ndarray, columns: dict[str, Any], path: Path) -> EmbeddingSet:
    n = len(features)
    for name, column in columns.items():
        if len(column) != n:
            raise UnusableEmbedding(
                f"{path.name}: {n:,} vectors but {len(column):,} values of {name!r}"
            )
    columns = {k: _plain(v) for k, v in columns.items()}
    ids = columns.pop("id", columns.pop("ids", None))
    given = [columns.pop(k, None) for k in ("label", "labels", "y")]
    label = next((v for v in given if v is not None), None)
    labels, classes = _labels(label, columns.pop("class", None))
    return EmbeddingSet(
        features,
        labels,
        () if ids is None else tuple(str(i) for i in ids),
        classes=classes,
        columns={k: v for k, v in columns.items() if v.dtype.kind in "fiubU"},
        provenance={"file": path.name},
    )


def _plain(values: np.ndarray) -> np.ndarray:
    """Numbers as they are; anything else as text, "" where there is none."""
    if values.dtype.kind in "fiubU":
        return values
    told = ["" if v is None or v != v else str(v)[:TEXT] for v in values.tolist()]
    return np.array(told, dtype=np.str_)


def _labels(
    values: np.ndarray | None, names: np.ndarray | None
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Class numbers (n), -1 where there is none, and their names where they have some."""
    if values is None:
        values, names = names, None
    if values is None:
        return None, ()
    if values.dtype.kind == "f" and (values == np.round(values))[np.isfinite(values)].all():
        values = np.where(np.isfinite(values), values, -1).astype(np.int64)
    if values.dtype.kind in "iub":
        numbers = values.astype(np.int64)
        return numbers, () if names is None else _names(numbers, names)
    text = np.array([str(v) for v in values])
    found = sorted(set(text.tolist()) - {"", "nan"})
    at = {name: number for number, name in enumerate(found)}
    return np.array([at.get(t, -1) for t in text.tolist()], np.int64), tuple(found)


def _names(numbers: np.ndarray, names: np.ndarray) -> tuple[str, ...]:
    """Names by number, where each number from 0 up to the largest has one name."""
    pairs = {(n, str(name)) for n, name in zip(numbers.tolist(), names.tolist(), strict=True)}
    known = sorted(pair for pair in pairs if pair[0] >= 0)
    if [n for n, _ in known] != list(range(len(known))):
        return ()
    return tuple(name for _, name in known)


def _floats(array: np.ndarray, path: Path) -> np.ndarray:
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise UnusableEmbedding(
            f"{path.name} must hold (n, d) numbers; got {array.dtype} {array.shape}"
        )
    return np.ascontiguousarray(array, np.float32)


def _check_shape(path: Path, shape: tuple[int, ...], dtype: np.dtype, size: int) -> None:
    if dtype.hasobject:
        raise UnusableEmbedding(f"{path.name} holds pickled objects, which are never opened")
    count = 1
    for n in shape:
        count *= int(n)
    if count * dtype.itemsize > size:
        raise UnusableEmbedding(f"{path.name} promises {shape} {dtype} but is {size:,} bytes long")
