"""Vectors from elsewhere: `.npy`, `.npz`, `.parquet`, `.csv`. Nothing in them is trusted.

No pickle is opened; sizes are summed before anything is unpacked; a header that promises more than
the file holds is refused, and so is what is no ordinary file. Whatever the format, `id`, `label`,
`class` and `split` are known by name, what else is text or number becomes a column, and all of it
passes `checked_set`. Tables are read by parquet_files.py and csv_files.py, pictures that come along
by attached_images.py.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from contrastive_core.embeddings.csv_files import read_csv
from contrastive_core.embeddings.parquet_files import read_parquet
from contrastive_core.embeddings.table_columns import TableLimits, Texts
from contrastive_core.errors import Damaged, NotRegular, UnusableEmbedding, explained
from contrastive_core.messages import message
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.row_part import part_of
from contrastive_core.storage.regular_files import open_regular, printable

__all__ = ["ENDINGS", "MAX_TEXT", "checked_set", "class_numbers", "npy_head", "read"]

ENDINGS = (".npy", ".npz", ".parquet", ".csv")
LIMIT = 2 << 30  # bytes of what is known of the rows of a table
VECTORS = 8 << 30  # of a file, and of its vectors, which are read in parts
STEP = 64 << 20  # bytes of such a part
Part = tuple[int, int]  # (i, of): the i-th of so many equal parts of the rows
MAX_TEXT = 500  # characters of a text that are kept
USUAL = ("features", "embeddings", "embedding", "vectors", "x", "X", "z")  # names of the array of vectors
Head = tuple[tuple[int, ...], bool, np.dtype]  # shape, whether by columns, type


def read(path: str | Path, part: Part = (0, 1), leave_out: Sequence[str] = ()) -> EmbeddingSet:
    """An `EmbeddingSet` from a file.

    Args: part: only these rows, as they stand in the whole. Of `.npy` and `.npz` no other vector
        comes into memory; a table is read whole, then cut; leave_out: columns of a table that are
        numbers and no part of the vectors.
    Raises: UnusableEmbedding, NotRegular or Damaged with a sentence; FileNotFoundError.
    """
    path = Path(path)
    name = printable(path.name)
    if path.suffix.lower() not in ENDINGS:
        raise UnusableEmbedding(
            message("vectors are read from {endings}; got {name}", endings=", ".join(ENDINGS), name=f"{name!r}")
        )
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > VECTORS:
            raise UnusableEmbedding(
                message(
                    "{name} has {size} bytes; at most {vectors} are read",
                    name=name,
                    size=f"{size:,}",
                    vectors=f"{VECTORS:,}",
                )
            )
        try:
            rows = _read(file, path, part, leave_out)
        except (UnusableEmbedding, Damaged, NotRegular):
            raise
        except MemoryError:
            raise UnusableEmbedding(message("{name} promises more than memory holds", name=name)) from None
        except Exception as error:
            why = printable(explained(error))
            raise Damaged(message("{name} cannot be read: {why}", name=name, why=why)) from None
    if rows.width < 2:
        raise UnusableEmbedding(message("{name} has one number in each row; a vector takes two or more", name=name))
    return rows


def _read(file: BinaryIO, path: Path, part: Part, leave_out: Sequence[str]) -> EmbeddingSet:
    ending = path.suffix.lower()
    if ending == ".npy":
        return _npy(file, path, part)
    if ending == ".npz":
        return _npz(file, path, part)
    reader = read_parquet if ending == ".parquet" else read_csv
    features, columns, provenance = reader(file, path, TableLimits(VECTORS, LIMIT), leave_out)
    rows = checked_set(features, columns, path, provenance)
    if part[1] == 1:
        return rows
    return rows.take(np.arange(len(rows))[_rows_of(len(rows), part, path)])


def _rows_of(n: int, part: Part, path: Path) -> slice:
    """The part's rows of n. Raises UnusableEmbedding where it has none."""
    rows = part_of(n, part)
    if part[1] > 1 and rows.start == rows.stop:
        raise UnusableEmbedding(message("{name} has fewer rows than there are processes", name=path.name))
    return rows


# --- arrays --------------------------------------------------------------------------------------


def _npy(file: BinaryIO, path: Path, part: Part) -> EmbeddingSet:
    head = npy_head(file, path, os.fstat(file.fileno()).st_size)
    features, rows = _vectors(file, head, path, part)
    return _cut(features, rows, head[0][0], {}, path)


def _npz(file: BinaryIO, path: Path, part: Part) -> EmbeddingSet:
    with zipfile.ZipFile(file) as archive:
        if (total := sum(entry.file_size for entry in archive.infolist())) > VECTORS:
            raise UnusableEmbedding(
                message(
                    "{name} would unpack to {total} bytes; at most {vectors} are read",
                    name=path.name,
                    total=f"{total:,}",
                    vectors=f"{VECTORS:,}",
                )
            )
        heads: dict[str, Head] = {}
        for entry in archive.infolist():
            with archive.open(entry) as member:
                head = _head(member, path)
                _check_size(path, head, entry.file_size - member.tell())
            heads[entry.filename.removesuffix(".npy")] = head
        name = "features" if "meta" in heads else _vector_array(heads, path)
        if name not in heads:
            raise UnusableEmbedding(message("{name} has no array of features", name=path.name))
        with archive.open(f"{name}.npy") as member:
            features, rows = _vectors(member, _head(member, path), path, part)
        others = {}
        for other, (shape, _, _) in heads.items():
            is_needed = other != "views" or part[1] == 1 if "meta" in heads else len(shape) == 1
            if other != name and is_needed:
                with archive.open(f"{other}.npy") as member:
                    others[other] = np.lib.format.read_array(member, allow_pickle=False)
    return _cut(features, rows, heads[name][0][0], others, path)


def _vector_array(heads: Mapping[str, Head], path: Path) -> str:
    """Which of the arrays holds the vectors."""
    wide = [k for k, (shape, _, dtype) in heads.items() if len(shape) == 2 and dtype.kind in "fiu"]
    if not wide:
        raise UnusableEmbedding(message("{name} has no array (n, d) of numbers", name=path.name))
    usual = next((k for k in USUAL if k in wide), None)
    if usual is None and len(wide) > 1:
        raise UnusableEmbedding(
            message(
                "{name} has several arrays (n, d), {wide}; the one of vectors must be named {usual}",
                name=path.name,
                wide=printable(", ".join(wide), 200),
                usual=" or ".join(USUAL),
            )
        )
    return usual or wide[0]


def _vectors(file: Any, head: Head, path: Path, part: Part) -> tuple[np.ndarray, slice]:
    """A part's vectors, read from behind the header, and which rows they are."""
    shape, by_column, dtype = head
    _check_numbers(shape, dtype, path)
    n, d = shape
    rows = _rows_of(n, part, path)
    if by_column and part[1] > 1:
        raise UnusableEmbedding(message("{name} holds its vectors by columns; save them anew", name=path.name))
    file.seek(rows.start * d * dtype.itemsize, os.SEEK_CUR)
    features = np.empty((rows.stop - rows.start, d), np.float32)
    lines = features.T if by_column else features  # as they lie in the file, one after the other
    step = max(1, STEP // max(1, lines.shape[1] * dtype.itemsize))
    for begin in range(0, len(lines), step):
        part_of_lines = lines[begin : begin + step]
        content = file.read(part_of_lines.size * dtype.itemsize)
        part_of_lines[:] = np.frombuffer(content, dtype).reshape(part_of_lines.shape)
    return features, rows


def _cut(features: np.ndarray, rows: slice, n: int, others: dict[str, np.ndarray], path: Path) -> EmbeddingSet:
    """The part's rows of what is known of all n, read whole so that classes get the same numbers in
    every part."""
    if len(features) == n:
        return _assembled(features, others, path)
    all_rows = _assembled(np.zeros((n, 1), np.float32), others, path)
    return replace(all_rows.take(np.arange(n)[rows]), features=features)


def _assembled(features: np.ndarray, others: dict[str, np.ndarray], path: Path) -> EmbeddingSet:
    """Of a file that `EmbeddingSet.save` wrote, or of anybody's arrays."""
    if "meta" in others and others["meta"].dtype == np.uint8:
        try:
            return EmbeddingSet.from_arrays({**others, "features": features})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = printable(error)
            raise UnusableEmbedding(message("{name} cannot be used: {why}", name=path.name, why=why)) from None
    return checked_set(features, {k: v for k, v in others.items() if v.ndim == 1}, path)


def npy_head(file: BinaryIO, path: Path, size: int) -> Head:
    """Shape, whether by columns, and type of a `.npy` file of `size` bytes, read up to its values.

    Raises: UnusableEmbedding for pickles, and where it promises more than it holds; Damaged.
    """
    head = _head(file, path)
    _check_size(path, head, size - file.tell())
    return head


def _head(file: Any, path: Path) -> Head:
    """Shape, whether by columns, and type, from the header of a `.npy` file."""
    try:
        version = np.lib.format.read_magic(file)
    except ValueError:
        raise Damaged(message("{name} does not begin as a .npy file does", name=path.name)) from None
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise UnusableEmbedding(message("{name} is of a version of .npy that is not known", name=path.name))
    shape, by_column, dtype = readers[version](file)
    return shape, by_column, dtype


def _check_size(path: Path, head: Head, size: int) -> None:
    """Refuse pickles, and a header that promises more than the `size` bytes behind it."""
    shape, _, dtype = head
    if dtype.hasobject:
        raise UnusableEmbedding(message("{name} holds pickled objects, which are never opened", name=path.name))
    count = 1
    for n in shape:
        count *= int(n)
    if count * dtype.itemsize > size:
        raise UnusableEmbedding(
            message(
                "{name} promises {shape} {dtype} but holds {size} bytes",
                name=path.name,
                shape=shape,
                dtype=dtype,
                size=f"{size:,}",
            )
        )


# --- the same for every format -------------------------------------------------------------------


def checked_set(
    features: np.ndarray,
    columns: Mapping[str, np.ndarray | Texts],
    path: Path,
    provenance: dict[str, Any] | None = None,
) -> EmbeddingSet:
    """An `EmbeddingSet` of vectors and what else is known per row, by name.

    Raises: UnusableEmbedding.
    """
    _check_numbers(features.shape, features.dtype, path)
    if not len(features):
        raise UnusableEmbedding(message("{name} has no rows", name=path.name))
    for name, column in columns.items():
        if len(column) != len(features):
            raise UnusableEmbedding(
                message(
                    "{name}: {features} vectors but {column} values of {name_2}",
                    name=path.name,
                    features=f"{len(features):,}",
                    column=f"{len(column):,}",
                    name_2=f"{printable(name, 80)!r}",
                )
            )
    plain = {printable(name, 80): _plain(column, name, path) for name, column in columns.items()}
    ids = plain.pop("id", plain.pop("ids", None))
    label_columns = [plain.pop(k, None) for k in ("label", "labels", "y")]
    label = next((v for v in label_columns if v is not None), None)
    labels, classes = class_numbers(label, plain.pop("class", None))
    return EmbeddingSet(
        np.ascontiguousarray(features, np.float32),
        labels,
        () if ids is None else tuple(str(i) for i in ids.tolist()),
        classes=classes,
        columns=plain,
        provenance={"file": path.name, **(provenance or {})},
    )


def _check_numbers(shape: tuple[int, ...], dtype: np.dtype, path: Path) -> None:
    if len(shape) == 1:
        raise UnusableEmbedding(
            message(
                "{name} must hold (n, d) numbers; got {dtype} {shape}. Labels go with their vectors "
                "into one .npz: np.savez('both.npz', features=vectors, label=labels)",
                name=path.name,
                dtype=dtype,
                shape=shape,
            )
        )
    if len(shape) != 2 or dtype.kind not in "fiu":
        raise UnusableEmbedding(
            message("{name} must hold (n, d) numbers; got {dtype} {shape}", name=path.name, dtype=dtype, shape=shape)
        )


def _plain(values: np.ndarray | Texts, name: str, path: Path) -> np.ndarray:
    """Numbers as they are; anything else as text, "" where there is none.

    Raises: UnusableEmbedding where texts would take more than LIMIT, each as wide as the longest.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        return values
    if isinstance(values, np.ndarray) and values.dtype.kind != "U":
        values = np.array(["" if v is None or v != v else str(v) for v in values.tolist()], np.str_)
    texts = values.unique if isinstance(values, Texts) else values
    width = max(1, min(MAX_TEXT, max(map(len, texts), default=1)))
    if (size := 4 * width * max(len(texts), len(values))) > LIMIT:
        raise UnusableEmbedding(
            message(
                "{name}: the texts of {name_2} would take {size} bytes; at most {limit} are read",
                name=path.name,
                name_2=f"{printable(name, 80)!r}",
                size=f"{size:,}",
                limit=f"{LIMIT:,}",
            )
        )
    cut = np.array(texts, f"<U{width}")  # longer ones are cut
    return cut[values.index] if isinstance(values, Texts) else cut


def class_numbers(
    values: np.ndarray | None, names: np.ndarray | None = None
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Class numbers (n), -1 where there is none, and their names where they have some."""
    if values is None:
        values, names = names, None
    if values is None:
        return None, ()
    if values.dtype.kind == "f" and (values == np.round(values))[np.isfinite(values)].all():
        values = np.where(np.isfinite(values), values, -1).astype(np.int64)
    if values.dtype.kind in "iub":
        numbers = np.maximum(values.astype(np.int64), -1)
        return numbers, () if names is None else _names(numbers, names)
    classes, numbers = np.unique(values.astype(np.str_), return_inverse=True)
    nameless = np.isin(classes, ("", "nan"))
    renumbered = np.where(nameless, -1, np.cumsum(~nameless) - 1)
    return renumbered[numbers], tuple(classes[~nameless].tolist())


def _names(numbers: np.ndarray, names: np.ndarray) -> tuple[str, ...]:
    """Names by number, where each number from 0 up to the largest has one name."""
    pairs = {(n, str(name)) for n, name in zip(numbers.tolist(), names.tolist(), strict=True)}
    numbered = sorted(pair for pair in pairs if pair[0] >= 0)
    if [n for n, _ in numbered] != list(range(len(numbered))):
        return ()
    return tuple(name for _, name in numbered)
