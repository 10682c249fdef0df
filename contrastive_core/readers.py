"""Vectors from elsewhere: `.npy`, `.npz`, `.parquet`, `.csv`. Nothing in them is trusted.

No pickle is opened; sizes are summed before anything is unpacked; a header that promises more than
the file holds is refused. In a table the vectors are one list column, or all numeric columns; `id`,
`label`, `class` and `split` are known by name, what else is text or number becomes a column.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core import store
from contrastive_core.embedding_set import EmbeddingSet, UnusableEmbedding

__all__ = ["ENDINGS", "read"]

ENDINGS = (".npy", ".npz", ".parquet", ".csv")
LIMIT = 2 << 30  # bytes that a file may hold, or unpack to
KNOWN = ("id", "label", "class", "split", "embedding", "features")


def read(path: str | Path) -> EmbeddingSet:
    """An `EmbeddingSet` from a file.

    Raises: UnusableEmbedding or store.Damaged with a sentence; FileNotFoundError.
    """
    path = Path(path)
    if path.suffix not in ENDINGS:
        raise UnusableEmbedding(f"vectors are read from {', '.join(ENDINGS)}; got {path.name!r}")
    size = path.stat().st_size
    if size > LIMIT:
        raise UnusableEmbedding(f"{path.name} has {size:,} bytes; at most {LIMIT:,} are read")
    try:
        found = {".npy": _npy, ".npz": _npz, ".parquet": _parquet, ".csv": _csv}[path.suffix](path)
    except (UnusableEmbedding, store.Damaged):
        raise
    except MemoryError:
        raise UnusableEmbedding(f"{path.name} promises more than memory holds") from None
    except Exception as error:
        raise store.Damaged(
            f"{path.name} cannot be read: {type(error).__name__}: {error}"
        ) from None
    return found


def _npy(path: Path) -> EmbeddingSet:
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        if version not in readers:
            raise UnusableEmbedding(f"{path.name} is of a version of .npy that is not known")
        shape, _, dtype = readers[version](file)
        _check_shape(path, shape, dtype, os.fstat(file.fileno()).st_size)
    return EmbeddingSet(_floats(np.load(path, allow_pickle=False), path))


def _npz(path: Path) -> EmbeddingSet:
    arrays = store.read_npz(path, LIMIT)
    if "meta" in arrays and "features" in arrays:
        return EmbeddingSet.from_arrays(arrays)
    wide = [k for k, v in arrays.items() if v.ndim == 2 and v.dtype.kind in "fiu"]
    if not wide:
        raise UnusableEmbedding(f"{path.name} has no array (n, d) of numbers")
    name = next(
        (k for k in ("features", "embeddings", "embedding", "x", "z") if k in wide), wide[0]
    )
    features = _floats(arrays.pop(name), path)
    return _with_columns(features, {k: v for k, v in arrays.items() if v.ndim == 1}, path)


def _parquet(path: Path) -> EmbeddingSet:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    total = sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups))
    if total > LIMIT:
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
    return _from_table(features, columns, path)


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
    ids = columns.pop("id", columns.pop("ids", None))
    columns.pop("split", None)
    given = [columns.pop(k, None) for k in ("label", "labels", "y", "class")]
    labels, classes = _labels(next((v for v in given if v is not None), None))
    return EmbeddingSet(
        features,
        labels,
        () if ids is None else tuple(str(i) for i in ids),
        classes=classes,
        columns={k: v for k, v in columns.items() if v.dtype.kind in "fiubU"},
        provenance={"file": path.name},
    )


def _labels(values: np.ndarray | None) -> tuple[np.ndarray | None, tuple[str, ...]]:
    if values is None:
        return None, ()
    if values.dtype.kind in "iu":
        return values.astype(np.int64), ()
    text = np.array([str(v) for v in values])
    names, numbers = np.unique(text, return_inverse=True)
    return numbers.astype(np.int64), tuple(names.tolist())


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
