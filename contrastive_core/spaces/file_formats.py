"""Readers of untrusted vector files: `.npy`, `.npz`, `.parquet`, `.csv`.

Pickles are not opened, and sizes are checked before anything is unpacked. A header that declares more data than the
file holds is refused, as is anything but a regular file. tables.py reads tables, attached_files.py images."""

import math
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from contrastive_core.base.errors import Damaged, LabError, UnusableEmbedding, explained
from contrastive_core.base.messages import N_, printable, thousands
from contrastive_core.base.storage import expands, open_regular
from contrastive_core.spaces.embedding_set import EmbeddingSet, Provenance, check_unique
from contrastive_core.spaces.towers import PAIR, TOWER, columns_of_towers, joined, recognized, with_text

ENDINGS = (".npy", ".npz", ".parquet", ".csv")
BINARY = (".npy", ".npz", ".parquet")
OPENED = (*ENDINGS, ".jsonl")  # and texts, whose vectors are elsewhere
LIMIT = 2 << 30  # bytes of what is known of the rows of a table
VECTORS = 8 << 30  # of a file, and of its vectors, which are read in parts
MAX_TEXT = 500  # characters of a text that are kept
STEP = 64 << 20  # bytes of vectors that are read at a time
NARROW = N_("{name} needs two or more columns of numbers as vectors; got {got}")
NO_VECTORS = N_(
    "{name} must contain one numeric array (n, d). If it contains several, name the array of vectors "
    "{usual}; got {got}. Store labels in the same .npz: np.savez('both.npz', features=vectors, "
    "label=labels)"
)
USUAL = ("features", "embeddings", "embedding", "vectors", "x", "X", "z")  # names of the array of vectors
QUERY = ("anchor", "anchors", "query", "queries", "sentence1", "messages")
POSITIVE = ("positive", "positives", "pos", "response", "sentence2", "positive_messages")
NEGATIVE = ("negative", "negatives", "neg", "rejected_response", "negative_messages")
Head = tuple[tuple[int, ...], bool, np.dtype]  # shape, whether by columns, type
Arrays = Mapping[str, np.ndarray]


def read(path: str | Path, leave_out: Sequence[str] = (), by_id: bool = False) -> EmbeddingSet:
    """Read an `EmbeddingSet` from a file. `leave_out`: columns of a table that are not part of the vectors; `by_id`:
    rows of one sample may share its id, which pairs them with those of another file.

    Raises: UnusableEmbedding, NotRegular or Damaged with a sentence; FileNotFoundError."""
    path = Path(path)
    name = printable(path.name)
    if are_triplets(path):
        from contrastive_core.spaces import triplets  # which reads vectors with this module

        return triplets.read(path)
    if path.suffix.lower() not in ENDINGS:
        values = {"endings": ", ".join(OPENED), "name": f"{name!r}"}
        raise UnusableEmbedding("vector files must end in {endings}; got {name}", **values)
    with open_regular(path, VECTORS) as file, explained_errors(path):
        ending = path.suffix.lower()
        if ending == ".npy":
            head = npy_head(file, path, os.fstat(file.fileno()).st_size)
            rows = _set_of({"": _vectors(file, head, path)}, {}, {}, path)
        elif ending == ".npz":
            rows = _read_npz(file, path)
        else:
            from contrastive_core.spaces import tables  # pandas and pyarrow take half a second

            read_table = tables.read_parquet if ending == ".parquet" else tables.read_csv
            rows = _set_of(*read_table(file, path, leave_out), path)
    if rows.width < 2:
        raise UnusableEmbedding(NARROW, name=name, got=1)
    if not (by_id or {"view", TOWER} & {*rows.columns}):  # views of a sample share its id, and so may two towers
        check_unique(rows.ids, name, rows.columns.get("split", np.array(())).tolist())  # pages show one split
    return recognized(rows) if TOWER in rows.columns else rows


@contextmanager
def explained_errors(path: Path) -> Iterator[None]:
    """Raise one sentence, as Damaged or UnusableEmbedding, for anything that a reader of a foreign file raises."""
    name = printable(path.name)
    try:
        yield
    except LabError:
        raise
    except MemoryError:
        raise UnusableEmbedding("{name} declares more data than fits in memory", name=name) from None
    except zipfile.BadZipFile:
        raise Damaged("{name} is damaged, or is not an .npz file", name=name) from None
    except Exception as error:
        if isinstance(error, UnicodeDecodeError) and path.suffix.lower() not in BINARY:
            raise Damaged("{name} is not text in UTF-8", name=name) from None
        raise Damaged("{name} cannot be read: {why}", name=name, why=printable(explained(error))) from None


def table_columns(path: Path) -> tuple[str, ...]:
    """Return the names of a table's columns and of its series; () for a file of arrays. Raises as `read` does."""
    if path.suffix.lower() not in (".parquet", ".csv"):
        return ()
    from contrastive_core.spaces import tables

    with open_regular(path, VECTORS) as file, explained_errors(path):
        return tables.column_names(file, path)


def are_triplets(path: str | Path) -> bool:
    """Return whether a file or folder holds triplets or their vectors, judging by its names."""
    path, wanted = Path(path), list[Sequence[str]]((QUERY, POSITIVE))
    ending = path.suffix.lower()
    if ending == ".jsonl" or is_beir(path):
        return True
    try:
        if ending == ".npz":
            wanted.append(NEGATIVE)  # two arrays are two towers
            with open_regular(path, VECTORS) as file, zipfile.ZipFile(file) as archive:
                names = [name.removesuffix(".npy") for name in archive.namelist()]
        else:
            names = [*table_columns(path)]
    except Exception:  # who opens it says why
        return False
    return not {*names} & {*USUAL} and all(any(is_column_of(name.lower(), known) for name in names) for known in wanted)


def has_lines(path: str | Path) -> bool:
    """Return whether a file holds triplets with one line for each query."""
    return Path(path).suffix.lower() in (".jsonl", ".csv", ".parquet") and are_triplets(path)


def is_column_of(name: str, known: Sequence[str]) -> bool:
    """Return whether a column has one of these names, or one of them followed by a number."""
    stem, _, number = name.rpartition("_")
    return name in known or (stem in known and number.isdigit())


def is_beir(path: Path) -> bool:
    return (path / "corpus.jsonl").is_file() and (path / "queries.jsonl").is_file()


def _read_npz(file: BinaryIO, path: Path) -> EmbeddingSet:
    """Read the vector arrays of an archive: `features` in our own files; one with a usual name; two floating-point
    arrays, or else two integer ones, for two towers; otherwise the only one."""
    heads: dict[str, Head] = {}
    vectors, others = dict[str, np.ndarray](), dict[str, np.ndarray]()
    with zipfile.ZipFile(file) as archive:
        check_size(sum(entry.file_size for entry in archive.infolist()), VECTORS, file, path)
        for entry in archive.infolist():
            with archive.open(entry) as member:
                heads[entry.filename.removesuffix(".npy")] = npy_head(member, path, entry.file_size)
        is_own = "meta" in heads
        wide = [k for k, (shape, _, dtype) in heads.items() if len(shape) == 2 and dtype.kind in "fiu"]
        known = [k for k in (("features",) if is_own else USUAL) if k in wide]
        of_towers = [k for k in wide if heads[k][2].kind == "f"] or wide
        if is_own or len(of_towers) != 2 or {*USUAL} & {*heads}:
            if not known and (is_own or len(wide) != 1):
                got = printable(", ".join(f"{k} {shape}" for k, (shape, _, _) in heads.items()), 200)
                raise UnusableEmbedding(NO_VECTORS, name=path.name, usual=" or ".join(USUAL), got=got)
            of_towers = (known or wide)[:1]
        for name, head in heads.items():
            with archive.open(f"{name}.npy") as member:
                if name in of_towers:
                    npy_head(member, path, archive.getinfo(f"{name}.npy").file_size)
                    vectors[name] = _vectors(member, head, path)
                elif is_own or len(head[0]) == 1:
                    others[name] = np.lib.format.read_array(member, allow_pickle=False)
    if is_own and others["meta"].dtype == np.uint8:  # a file that `EmbeddingSet.save` wrote
        try:
            return EmbeddingSet.from_arrays({**others, **vectors})
        except UnusableEmbedding as error:
            raise UnusableEmbedding("{name} cannot be used: {why}", name=path.name, why=printable(error)) from None
    return _set_of(vectors, {k: v for k, v in others.items() if v.ndim == 1}, {}, path)


def check_rows(rows: int, path: Path) -> None:
    """Raise UnusableEmbedding if there are no rows."""
    if not rows:
        raise UnusableEmbedding("{name} has no rows", name=path.name)


def check_size(total: int, limit: int, file: BinaryIO, path: Path) -> None:
    """Raise UnusableEmbedding if data would take too much memory: `total` bytes exceed `limit`, or the file is so small
    that it must be a decompression bomb."""
    stored = os.fstat(file.fileno()).st_size
    if total > limit or expands(total, stored):
        values = thousands(total=total, stored=stored, limit=limit)
        text = N_("{name} would unpack to {total} bytes from {stored}; at most {limit} are read")
        raise UnusableEmbedding(text, name=path.name, **values)


def _vectors(file: Any, head: Head, path: Path) -> np.ndarray:
    """Read the vectors that follow the header."""
    shape, by_column, dtype = head
    if len(shape) != 2 or dtype.kind not in "fiu":
        usual = " or ".join(USUAL)
        raise UnusableEmbedding(NO_VECTORS, name=path.name, usual=usual, got=f"{dtype} {shape}")
    features = np.empty(shape, np.float32)
    lines = features.T if by_column else features  # as they lie in the file, one after the other
    step = max(1, STEP // max(1, lines.shape[1] * dtype.itemsize))
    for begin in range(0, len(lines), step):
        part_of_lines = lines[begin : begin + step]
        content = file.read(part_of_lines.size * dtype.itemsize)
        part_of_lines[:] = np.frombuffer(content, dtype).reshape(part_of_lines.shape)
    return features


def npy_head(file: Any, path: Path, size: int) -> Head:
    """Return shape, memory order and type of a `.npy` file of `size` bytes, read up to its values. Raises
    UnusableEmbedding for pickles and for a shape larger than the file; Damaged."""
    try:
        version = np.lib.format.read_magic(file)
    except ValueError:
        raise Damaged("{name} does not begin like a .npy file", name=path.name) from None
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


def _set_of(vectors: Arrays, columns: Arrays, provenance: Provenance, path: Path) -> EmbeddingSet:
    """Build a set from vectors (n, d), by tower if there are two, and columns by name. With two towers, an array such
    as `question_text` describes the rows of `question`; `question_pair` and `answer_pair` name the group of each row;
    any other describes the rows of both."""
    if len(vectors) == 2:
        parts = columns_of_towers(columns, {name: len(features) for name, features in vectors.items()})
        groups = [part.pop(PAIR, None) for part in parts]
        sets = [_set_of({"": x}, part, provenance, path) for x, part in zip(vectors.values(), parts, strict=True)]
        a, b = (printable(name, 80) for name in vectors)
        return joined(with_text(sets[0]), with_text(sets[1]), (a, b), *groups)
    (features,) = vectors.values()
    check_rows(len(features), path)
    for name, column in columns.items():
        if len(column) != len(features):
            values = {"name": path.name, "column": f"{printable(name, 80)!r}"}
            counts = thousands(vectors=len(features), values=len(column))
            raise UnusableEmbedding("{name}: {vectors} vectors but {values} values of {column}", **values, **counts)
    plain = {printable(name, 80): _plain(column) for name, column in columns.items()}
    ids = plain.pop("id", plain.pop("ids", None))
    label_columns = [plain.pop(k, None) for k in ("label", "labels", "y")]
    label = next((v for v in label_columns if v is not None), None)
    labels, classes = class_numbers(label, plain.pop("class", None))
    return EmbeddingSet(
        np.ascontiguousarray(features, np.float32),
        labels,
        () if ids is None else tuple(map(str, ids.tolist())),
        classes=classes,
        columns=plain,
        provenance={"file": path.name, "has_ids": ids is not None, **provenance},
    )


def _plain(values: np.ndarray) -> np.ndarray:
    """Return numbers unchanged, and anything else as text, "" for missing values."""
    if values.dtype.kind not in "fiubU":
        values = np.array(["" if v is None or v != v else str(v) for v in values.tolist()], np.str_)
    return cut_texts(values)


def cut_texts(texts: np.ndarray) -> np.ndarray:
    """Truncate texts to the maximum length; numbers stay."""
    is_long = texts.dtype.kind == "U" and texts.dtype.itemsize > 4 * MAX_TEXT
    return texts.astype(f"<U{MAX_TEXT}") if is_long else texts


def class_numbers(
    values: np.ndarray | None, names: np.ndarray | None = None
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return class numbers (n), -1 for none, and the class names if there are any. Args: names: beside numbers."""
    if values is None:
        values, names = names, None
    if values is None:
        return None, ()
    if values.dtype.kind == "f" and (values == np.round(values))[np.isfinite(values)].all():
        values = np.where(np.isfinite(values), values, -1).astype(np.int64)
    if values.dtype.kind in "iub":
        numbers, named = np.maximum(values.astype(np.int64), -1), list[tuple[int, str]]()
        if names is not None:
            named = sorted({(n, str(name)) for n, name in zip(numbers.tolist(), names.tolist(), strict=True) if n >= 0})
        has_all = [n for n, _ in named] == list(range(len(named)))  # one name for each number from 0 to the largest
        return numbers, tuple(name for _, name in named) if has_all else ()
    classes, numbers = np.unique(values.astype(np.str_), return_inverse=True)
    nameless = np.isin(classes, ("", "nan"))
    renumbered = np.where(nameless, -1, np.cumsum(~nameless) - 1)
    return renumbered[numbers], tuple(classes[~nameless].tolist())
