"""Vectors from elsewhere: `.npy`, `.npz`, `.parquet`, `.csv`. Nothing in them is trusted.

No pickle is opened; sizes are summed before anything is unpacked; a header that promises more than
the file holds is refused, and so is what is no ordinary file. Whatever the format, `id`, `label`,
`class` and `split` are known by name, and what else is text or number becomes a column. Tables are
read by tables.py, pictures that come along by attached_images.py.
"""

import math
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from contrastive_core.embeddings.tower_columns import columns_of_towers, with_text
from contrastive_core.errors import Damaged, NotRegular, UnusableEmbedding, explained
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.towers import PAIR, TOWER, joined, recognized
from contrastive_core.storage.json_files import JsonObject
from contrastive_core.storage.large_arrays import part_of
from contrastive_core.storage.regular_files import open_regular, printable, thousands

ENDINGS = (".npy", ".npz", ".parquet", ".csv")
LIMIT = 2 << 30  # bytes of what is known of the rows of a table
VECTORS = 8 << 30  # of a file, and of its vectors, which are read in parts
MAX_TEXT = 500  # characters of a text that are kept
STEP = 64 << 20  # bytes of vectors that are read at a time
Part = tuple[int, int]  # (i, of): the i-th of so many equal parts of the rows
USUAL = ("features", "embeddings", "embedding", "vectors", "x", "X", "z")  # names of the array of vectors
Head = tuple[tuple[int, ...], bool, np.dtype]  # shape, whether by columns, type


def read(path: str | Path, part: Part = (0, 1), leave_out: Sequence[str] = ()) -> EmbeddingSet:
    """An `EmbeddingSet` from a file. `part`: only these rows, as they stand in the whole. Of `.npy` and `.npz` no other
    vector comes into memory; a table is read whole, then cut; `leave_out`: columns of a table that are numbers and no
    part of the vectors. Raises: UnusableEmbedding, NotRegular or Damaged with a sentence; FileNotFoundError."""
    path = Path(path)
    name = printable(path.name)
    if path.suffix.lower() not in ENDINGS:
        values = {"endings": ", ".join(ENDINGS), "name": f"{name!r}"}
        raise UnusableEmbedding("vectors are read from {endings}; got {name}", **values)
    with open_regular(path, VECTORS) as file:
        try:
            rows = _read(file, path, part, leave_out)
        except (UnusableEmbedding, Damaged, NotRegular):
            raise
        except MemoryError:
            raise UnusableEmbedding("{name} declares more data than fits in memory", name=name) from None
        except Exception as error:
            why = printable(explained(error))
            raise Damaged("{name} cannot be read: {why}", name=name, why=why) from None
    if rows.width < 2:
        raise UnusableEmbedding("{name} has one number in each row; a vector takes two or more", name=name)
    return recognized(rows) if TOWER in rows.columns else rows


def _read(file: BinaryIO, path: Path, part: Part, leave_out: Sequence[str]) -> EmbeddingSet:
    ending = path.suffix.lower()
    if ending == ".npy":
        head = npy_head(file, path, os.fstat(file.fileno()).st_size)
        return _rows(*_vectors(file, head, path, part), head[0][0], {}, path)
    if ending == ".npz":
        return _npz(file, path, part)
    from contrastive_core.embeddings import tables  # pandas and pyarrow take half a second

    read_table = tables.read_parquet if ending == ".parquet" else tables.read_csv
    vectors, columns, origin = read_table(file, path, leave_out)
    if len(vectors) == 2:
        rows = _set_of_towers(vectors, columns, origin, path)
    else:
        rows = _set_of(next(iter(vectors.values())), columns, origin, path)
    return rows if part[1] == 1 else rows.take(np.arange(len(rows))[_rows_of(len(rows), part, path)])


def table_columns(path: Path) -> tuple[str, ...]:
    """The names of a table's columns, and of its series; () of a file of arrays. Raises what `read` does."""
    if path.suffix.lower() not in (".parquet", ".csv"):
        return ()
    from contrastive_core.embeddings import tables

    with open_regular(path, VECTORS) as file:
        try:
            return tables.column_names(file, path)
        except Exception as error:
            why = printable(explained(error))
            raise Damaged("{name} cannot be read: {why}", name=printable(path.name), why=why) from None


def _rows_of(n: int, part: Part, path: Path) -> slice:
    """The part's rows of n. Raises UnusableEmbedding where it has none."""
    rows = part_of(n, part)
    if part[1] > 1 and rows.start == rows.stop:
        raise UnusableEmbedding("{name} has fewer rows than processes", name=path.name)
    return rows


def _npz(file: BinaryIO, path: Path, part: Part) -> EmbeddingSet:
    with zipfile.ZipFile(file) as archive:
        if (total := sum(entry.file_size for entry in archive.infolist())) > VECTORS:
            values = thousands(total=total, limit=VECTORS)
            raise UnusableEmbedding("{name} would unpack to {total} bytes; at most {limit}", name=path.name, **values)
        heads: dict[str, Head] = {}
        for entry in archive.infolist():
            with archive.open(entry) as member:
                heads[entry.filename.removesuffix(".npy")] = npy_head(member, path, entry.file_size)
        if "meta" not in heads and part[1] == 1 and (towers := _tower_arrays(heads)):
            return _towers(archive, heads, towers, path)
        name = "features" if "meta" in heads else _vector_array(heads, path)
        if name not in heads:
            raise UnusableEmbedding("{name} has no array of features", name=path.name)
        with archive.open(f"{name}.npy") as member:
            npy_head(member, path, archive.getinfo(f"{name}.npy").file_size)
            features, rows = _vectors(member, heads[name], path, part)
        others = {}
        for other, (shape, _, _) in heads.items():
            is_needed = other != "views" or part[1] == 1 if "meta" in heads else len(shape) == 1
            if other != name and is_needed:
                with archive.open(f"{other}.npy") as member:
                    others[other] = np.lib.format.read_array(member, allow_pickle=False)
    return _rows(features, rows, heads[name][0][0], others, path)


def _tower_arrays(heads: Mapping[str, Head]) -> tuple[str, str] | None:
    """Return the names of two arrays of vectors, those of two towers; None where one has a usual name."""
    wide = [k for k, (shape, _, dtype) in heads.items() if len(shape) == 2 and dtype.kind == "f"]
    return (wide[0], wide[1]) if len(wide) == 2 and not {*USUAL} & {*heads} else None


def _towers(archive: zipfile.ZipFile, heads: Mapping[str, Head], names: tuple[str, str], path: Path) -> EmbeddingSet:
    """Two arrays of vectors as two towers. An array such as `question_text` describes the rows of `question`;
    `question_pair` and `answer_pair` name the group of each row; any other array is of the rows of both."""
    vectors, columns = {}, {}
    for name in names:
        with archive.open(f"{name}.npy") as member:
            npy_head(member, path, archive.getinfo(f"{name}.npy").file_size)
            vectors[name], _ = _vectors(member, heads[name], path, (0, 1))
    for key, (shape, _, _) in heads.items():
        if len(shape) == 1:
            with archive.open(f"{key}.npy") as member:
                columns[key] = np.lib.format.read_array(member, allow_pickle=False)
    return _set_of_towers(vectors, columns, {}, path)


def _set_of_towers(
    vectors: Mapping[str, np.ndarray], columns: Mapping[str, np.ndarray], provenance: JsonObject, path: Path
) -> EmbeddingSet:
    """Two towers of one file: vectors (n, d) by tower, and what else is known of their rows."""
    parts = columns_of_towers(columns, {name: len(features) for name, features in vectors.items()})
    groups = [part.pop(PAIR, None) for part in parts]
    sets = [_set_of(x, part, provenance, path) for x, part in zip(vectors.values(), parts, strict=True)]
    a, b = (printable(name, 80) for name in vectors)
    return joined(with_text(sets[0]), with_text(sets[1]), (a, b), *groups)


def _vector_array(heads: Mapping[str, Head], path: Path) -> str:
    """Which of the arrays holds the vectors."""
    wide = [k for k, (shape, _, dtype) in heads.items() if len(shape) == 2 and dtype.kind in "fiu"]
    if not wide:
        raise UnusableEmbedding("{name} has no array (n, d) of numbers", name=path.name)
    usual = next((k for k in USUAL if k in wide), None)
    if usual is None and len(wide) > 1:
        values = {"name": path.name, "wide": printable(", ".join(wide), 200), "usual": " or ".join(USUAL)}
        raise UnusableEmbedding(
            "{name} has several arrays (n, d), {wide}; the one of vectors must be named {usual}", **values
        )
    return usual or wide[0]


def _vectors(file: Any, head: Head, path: Path, part: Part) -> tuple[np.ndarray, slice]:
    """A part's vectors, read from behind the header, and which rows they are."""
    shape, by_column, dtype = head
    values = {"name": path.name, "dtype": dtype, "shape": shape}
    if len(shape) == 1:
        raise UnusableEmbedding(
            "{name} must hold (n, d) numbers; got {dtype} {shape}. Labels go with their vectors "
            "into one .npz: np.savez('both.npz', features=vectors, label=labels)",
            **values,
        )
    if len(shape) != 2 or dtype.kind not in "fiu":
        raise UnusableEmbedding("{name} must hold (n, d) numbers; got {dtype} {shape}", **values)
    n, d = shape
    rows = _rows_of(n, part, path)
    if by_column and part[1] > 1:
        raise UnusableEmbedding(
            "{name} stores its vectors in column order; save them in row order (np.ascontiguousarray)", name=path.name
        )
    file.seek(rows.start * d * dtype.itemsize, os.SEEK_CUR)
    features = np.empty((rows.stop - rows.start, d), np.float32)
    lines = features.T if by_column else features  # as they lie in the file, one after the other
    step = max(1, STEP // max(1, lines.shape[1] * dtype.itemsize))
    for begin in range(0, len(lines), step):
        part_of_lines = lines[begin : begin + step]
        content = file.read(part_of_lines.size * dtype.itemsize)
        part_of_lines[:] = np.frombuffer(content, dtype).reshape(part_of_lines.shape)
    return features, rows


def _rows(features: np.ndarray, rows: slice, n: int, others: dict[str, np.ndarray], path: Path) -> EmbeddingSet:
    """The part's rows of a file that `EmbeddingSet.save` wrote, or of anybody's arrays. What is known
    of all n is read whole, so that classes get the same numbers in every part."""
    is_part = len(features) != n
    vectors = np.zeros((n, 1), np.float32) if is_part else features
    if "meta" in others and others["meta"].dtype == np.uint8:
        try:
            made = EmbeddingSet.from_arrays({**others, "features": vectors})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = printable(error)
            raise UnusableEmbedding("{name} cannot be used: {why}", name=path.name, why=why) from None
    else:
        made = _set_of(vectors, {k: v for k, v in others.items() if v.ndim == 1}, {}, path)
    return replace(made.take(np.arange(n)[rows]), features=features) if is_part else made


def npy_head(file: Any, path: Path, size: int) -> Head:
    """Shape, whether by columns, and type of a `.npy` file of `size` bytes, read up to its values. Raises:
    UnusableEmbedding for pickles, and where it promises more than it holds; Damaged."""
    try:
        version = np.lib.format.read_magic(file)
    except ValueError:
        raise Damaged("{name} does not begin as a .npy file does", name=path.name) from None
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise UnusableEmbedding("{name} has an unknown .npy version", name=path.name)
    shape, by_column, dtype = readers[version](file)
    if dtype.hasobject:
        raise UnusableEmbedding("{name} contains pickled objects; these are never loaded", name=path.name)
    if math.prod(shape) * dtype.itemsize > (size := size - file.tell()):
        values = {"name": path.name, "shape": shape, "dtype": dtype, "size": f"{size:,}"}
        raise UnusableEmbedding("{name} declares {shape} {dtype} but contains {size} bytes", **values)
    return shape, by_column, dtype


def _set_of(
    features: np.ndarray, columns: Mapping[str, np.ndarray], provenance: JsonObject, path: Path
) -> EmbeddingSet:
    """An `EmbeddingSet` of vectors (n, d) and what else is known per row, by name."""
    if not len(features):
        raise UnusableEmbedding("{name} has no rows", name=path.name)
    for name, column in columns.items():
        if len(column) != len(features):
            values = {"name": path.name, "name_2": f"{printable(name, 80)!r}"}
            counts = thousands(features=len(features), column=len(column))
            raise UnusableEmbedding("{name}: {features} vectors but {column} values of {name_2}", **values, **counts)
    plain = {printable(name, 80): _plain(column) for name, column in columns.items()}
    ids = plain.pop("id", plain.pop("ids", None))
    label_columns = [plain.pop(k, None) for k in ("label", "labels", "y")]
    label = next((v for v in label_columns if v is not None), None)
    labels, classes = class_numbers(label, plain.pop("class", None))
    vectors, names = np.ascontiguousarray(features, np.float32), () if ids is None else tuple(map(str, ids.tolist()))
    about = {"file": path.name, "has_ids": ids is not None, **provenance}
    return EmbeddingSet(vectors, labels, names, classes=classes, columns=plain, provenance=about)


def _plain(values: np.ndarray) -> np.ndarray:
    """Numbers as they are; anything else as text, "" where there is none."""
    if values.dtype.kind not in "fiubU":
        values = np.array(["" if v is None or v != v else str(v) for v in values.tolist()], np.str_)
    return cut_texts(values) if values.dtype.kind == "U" else values


def cut_texts(texts: np.ndarray) -> np.ndarray:
    """Texts, at most so many characters of each."""
    most = MAX_TEXT
    return texts.astype(f"<U{most}") if texts.dtype.itemsize > 4 * most else texts


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
    return tuple(name for _, name in numbered) if [n for n, _ in numbered] == list(range(len(numbered))) else ()
