"""Texts to train or evaluate an encoder, as two towers: queries, and documents that answer them or not. Torch-free.

Formats: JSONL, CSV and Parquet with a line for each query, its positives and its negatives (sentence-transformers,
FlagEmbedding, ms-swift), an `.npz` of such vectors, and a folder of BEIR. A text in several lines becomes one row."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.base.errors import Damaged, UnusableEmbedding
from contrastive_core.base.memory import MAX_NPZ, read_arrays, read_npz, write_npz
from contrastive_core.base.messages import N_, join, message, printable, thousands
from contrastive_core.base.storage import data_home, open_regular
from contrastive_core.spaces import file_formats
from contrastive_core.spaces.attached_files import check_ids, judgments_file, read_qrels
from contrastive_core.spaces.embedding_set import EmbeddingSet, Provenance, check_unique
from contrastive_core.spaces.file_formats import NEGATIVE, POSITIVE, QUERY, explained_errors, is_beir, is_column_of
from contrastive_core.spaces.towers import NEGATIVE_OF, TEXT, joined, towers_of

NAMES = ("query", "document")
VECTORS = ("_embedding", "_embeddings", "_vector", "_vectors", "_features")
QUERY_IDS, DOCUMENT_IDS = ("id", "_id", "query_id", "qid"), ("positive_id", "document_id", "doc_id", "docid", "pid")
BESIDE = (".npz", ".npy")
LABELED, LABELS = ("sentence2", "response"), ("label", "score")  # pairs with these columns may not match
LIMIT = 2 << 30  # bytes of a file of texts
MOST_ENCODED = 20_000  # texts that are encoded while a person waits
NO_QUERIES = N_("{name} has no queries")
NO_POSITIVE = N_("{name} has no query with a positive")
NOT_BINARY = N_(
    "{name}: line {line} has the {column} {got}; only 1 for texts that match and 0 for others can be read. Keep the "
    "pairs that match and remove the column {column}"
)
NO_LINE = N_("{name}: line {line} is not a JSON object")
NO_TEXT = N_("{name}: line {line} has no {column}, or an empty one")
UNEVEN = N_("{name}: line {line} needs as many vectors as texts of {column}; got {vectors} and {texts}")
NO_VECTORS = N_(
    "{name} has texts and no vectors: save them beside it as {stem}.npy or {stem}.npz, or name such a file or a folder "
    "of sentence-transformers as the second file"
)
COUNTS = N_(
    "{vectors} has {got} vectors, but {name} has {queries} different queries and {documents} "
    "different documents; store the vectors in this order, queries first"
)
TOO_MANY = N_("{name} has {count} texts; at most {most} are encoded here: save their vectors beside it")
UNEQUAL = N_("{name} needs arrays of the same length, with one row for each query; got {got}")
GIVEN = N_("Documents given as negatives: {count}.")
SHARED = N_("Queries that share an answer with another query: {count}. They count as one group with all its answers.")
OTHER_WIDTHS = N_("{name}: its vectors have different lengths")


@dataclass
class Side:
    """Distinct texts of one tower. `order`: the index of each text of the file among them; `vectors`: one for each text
    of the file, if the file has them."""

    texts: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    vectors: list[Any] = field(default_factory=list)
    known: dict[object, int] = field(default_factory=dict)

    def add(self, text: str, vector: Any = None, name: str = "") -> int:
        """Return the number of a text; each empty text counts as distinct."""
        number = self.known.setdefault(text or (len(self.order),), len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
            self.ids.append(name)
        self.order.append(number)
        if vector is not None:
            self.vectors.append(vector)
        return number


@dataclass
class Triplets:
    """Queries, documents, and which document is a `positive` or a `negative` of which query."""

    name: str
    by: str = "positive"
    queries: Side = field(default_factory=Side)
    documents: Side = field(default_factory=Side)
    positive: list[tuple[int, int]] = field(default_factory=list)
    negative: list[tuple[int, int]] = field(default_factory=list)


def read(path: str | Path, vectors: str | Path | None = None) -> EmbeddingSet:
    """Return queries and documents as two towers.

    Args: vectors: an `.npy` or `.npz` of their vectors, or a folder of sentence-transformers; default: columns of the
    file itself, or a file of the same name beside it.
    Raises: UnusableEmbedding, Damaged, NotRegular or BadSetting with a sentence; FileNotFoundError."""
    path, found = Path(path), read_texts(Path(path))
    sides = (found.queries, found.documents)
    beside = (path / "vectors" if path.is_dir() else path).with_suffix
    source = Path(vectors) if vectors else next((p for end in BESIDE if (p := beside(end)).is_file()), None)
    if all(len(side.vectors) == len(side.order) for side in sides) and not vectors:
        try:
            features = [np.array(side.vectors, np.float32) for side in sides]
        except ValueError:
            raise UnusableEmbedding(OTHER_WIDTHS, name=found.name) from None
    elif source is None:
        raise UnusableEmbedding(NO_VECTORS, name=found.name, stem=printable(path.stem if path.is_file() else "vectors"))
    else:
        features = _encoded(source, found) if source.is_dir() else _arrays(source, found)
    return of_triplets(found, features)


def of_triplets(found: Triplets, features: Sequence[np.ndarray]) -> EmbeddingSet:
    """Build the two towers of triplets. Args: features: (n, d) and (m, d), a row for each distinct text or for each
    text of the file."""
    n, m = len(found.queries.texts), len(found.documents.texts)
    if not found.positive:
        raise UnusableEmbedding(NO_POSITIVE if n else NO_QUERIES, name=found.name)
    groups = groups_of(found, found.positive).astype(np.str_)
    pairs = groups[:n].copy(), groups[n:].copy()
    for pair, known in zip(pairs, np.array(found.positive).T, strict=True):
        pair[~np.isin(np.arange(len(pair)), known)] = ""
    negative_of: list[dict[str, None]] = [{} for _ in range(m)]
    for query, document in found.negative:
        negative_of[document][str(groups[query])] = None
    sets = []
    for side, x in zip((found.queries, found.documents), features, strict=True):
        if len(x) != len(side.texts):
            x = x[np.unique(side.order, return_index=True)[1]]
        columns = {TEXT: file_formats.cut_texts(np.array(side.texts, np.str_))} if any(side.texts) else {}
        about: Provenance = {"file": found.name, "has_ids": True, "paired_by": found.by}
        sets.append(EmbeddingSet(x, ids=tuple(side.ids), columns=columns, provenance=about))
    if any(negative_of):
        sets[1].columns[NEGATIVE_OF] = np.array([" ".join(of) for of in negative_of])
    return joined(sets[0], sets[1], NAMES, *pairs)


def groups_of(found: Triplets, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the group of each query, then of each document; queries with a document in common are one group. Args:
    pairs: of a query and its document."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, m = len(found.queries.texts), len(found.documents.texts)
    at = np.array(pairs, np.int64).reshape(-1, 2).T
    edges = coo_array((np.ones(at.shape[1]), (at[0], n + at[1])), (n + m, n + m))
    return np.asarray(connected_components(edges, directed=False)[1])


def note(rows: EmbeddingSet) -> str:
    """Return a note about given negatives and shared answers; "" if there are none."""
    if (towers := towers_of(rows)) is None or rows.provenance.get("paired_by") not in ("positive", "qrels"):
        return ""
    counts = np.bincount(towers.group_a[towers.group_a >= 0])
    given, shared = len(np.unique(towers.given_negatives()[:, 0])), int(counts[counts > 1].sum())
    said = [message(text, count=f"{count:,}") for text, count in ((GIVEN, given), (SHARED, shared)) if count]
    return join(" ", said) if said else ""


# --- texts ---------------------------------------------------------------------------------------


def read_texts(path: Path) -> Triplets:
    """Return the texts of a file or of a BEIR folder, with vectors if the file has them. In a file, negatives follow
    all positives, as in vectors beside it. Raises as `read` does."""
    if is_beir(path):
        return _of_beir(path)
    found, negatives = Triplets(printable(path.name)), []
    for number, line in lines(path):
        cells = {str(key).lower(): value for key, value in line.items()}
        query, vector, name = _texts(cells, QUERY, number, found.name)[0]
        at = found.queries.add(query, vector, name or _id_of(cells, QUERY_IDS))
        pairs = found.positive if is_match(cells, number, found.name) else found.negative
        pairs += [(at, found.documents.add(*one)) for one in _texts(cells, POSITIVE, number, found.name)]
        negatives += [(at, one) for one in _texts(cells, NEGATIVE, number, found.name)]
    found.negative += [(at, found.documents.add(*one)) for at, one in negatives]
    for side in (found.queries, found.documents):
        start = "row " if any(side.ids) else ""  # a number that is no id is told apart from those that are
        side.ids = [name or f"{start}{number}" for number, name in enumerate(side.ids)]
        check_unique(side.ids, found.name)
    return found


def lines(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield each line's number and its values by name."""
    ending, name = path.suffix.lower(), printable(path.name)
    is_text = ending not in (".parquet", ".npz")
    with open_regular(path, LIMIT if is_text else file_formats.VECTORS) as file, explained_errors(path):
        if ending == ".parquet":
            import pyarrow.parquet as pq  # half a second

            parts = pq.ParquetFile(file).iter_batches(1024)
            yield from enumerate((line for part in parts for line in part.to_pylist()), 1)
        elif ending == ".npz":
            arrays = {column: x for column, x in read_arrays(file, MAX_NPZ).items() if x.ndim}
            if len({len(x) for x in arrays.values()}) > 1:
                got = printable(", ".join(f"{column} {x.shape}" for column, x in arrays.items()), 200)
                raise UnusableEmbedding(UNEQUAL, name=name, got=got)
            for row in range(len(next(iter(arrays.values()), ()))):
                yield row + 1, {column: x[row].tolist() for column, x in arrays.items()}
        elif ending == ".csv":
            csv.field_size_limit(LIMIT)
            yield from enumerate(csv.DictReader(io.TextIOWrapper(file, "utf-8-sig", newline="")), 2)
        else:
            for number, line in enumerate(file, 1):
                if text := line.decode("utf-8-sig" if number == 1 else "utf-8").strip():
                    try:
                        read = json.loads(text)
                    except (ValueError, RecursionError):
                        read = None
                    if not isinstance(read, dict):
                        raise Damaged(NO_LINE, name=name, line=f"{number:,}")
                    yield number, read


def _id_of(cells: Mapping[str, object], names: Sequence[str]) -> str:
    """Return the first of these fields that has a value, as text; "" without one."""
    return next((str(cells[name]) for name in names if cells.get(name) not in (None, "")), "")


def _texts(cells: Mapping[str, object], names: Sequence[str], line: int, file: str) -> list[tuple[str, Any, str]]:
    """Return the texts of the columns with these names, such as `neg` or `negative_2`, each with its vector or None and
    its id or ""."""
    found: list[tuple[str, Any, str]] = []
    for column in cells:
        if not is_column_of(column, names):
            continue
        value: Any = cells[column]
        vectors: Any = next(
            (cells[f"{column}{end}"] for end in VECTORS if cells.get(f"{column}{end}") is not None), None
        )
        if is_vector(value) or (isinstance(value, list) and value and all(map(is_vector, value))):
            value, vectors = [""] * (1 if is_vector(value) else len(value)), value
        elif (value := plain(value)) in ([], [""]) and names is NEGATIVE:
            continue  # a line with fewer negatives
        if not value or not all(isinstance(one, str) and (one.strip() or vectors is not None) for one in value):
            raise UnusableEmbedding(NO_TEXT, name=file, line=f"{line:,}", column=printable(column, 80))
        vectors = [vectors] if is_vector(vectors) else vectors
        if vectors is not None and len(vectors) != len(value):
            counts = thousands(line=line, texts=len(value), vectors=len(vectors))
            raise UnusableEmbedding(UNEVEN, name=file, column=printable(column, 80), **counts)
        ids: Any = cells.get(f"{column}_ids", cells.get(f"{column}_id"))
        if ids is None and names is POSITIVE and len(value) == 1:
            ids = _id_of(cells, DOCUMENT_IDS)
        ids = ids if isinstance(ids, list) else [ids]
        named = ["" if one is None else str(one) for one in ids] if len(ids) == len(value) else [""] * len(value)
        found += zip(value, vectors or [None] * len(value), named, strict=True)
    if not found and names is not NEGATIVE:
        raise UnusableEmbedding(NO_TEXT, name=file, line=f"{line:,}", column=names[0])
    return found


def is_match(cells: Mapping[str, object], line: int, file: str) -> bool:
    """Return whether the texts of a pair match: its label or score is 1, or it has none."""
    column = next((name for name in LABELS if name in cells), "")
    if not column or not any(name in cells for name in LABELED):
        return True
    value: Any = cells[column]
    try:
        known = float(value)
    except (TypeError, ValueError, OverflowError):
        known = -1
    if known not in (0, 1):
        got = repr(printable(str(value), 80))
        raise UnusableEmbedding(NOT_BINARY, name=file, line=f"{line:,}", column=column, got=got)
    return known == 1


def is_vector(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(type(one) in (int, float) for one in value)


def plain(value: Any) -> list[Any]:
    """Return a value as a list of texts: a text, a list of texts, or the contents of chat messages."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value:
        return []
    if all(isinstance(one, dict) for one in value):
        return [" ".join(str(one.get("content") or "") for one in value).strip()]
    return [plain(one)[0] if isinstance(one, list) and one else one for one in value]


def _of_beir(folder: Path) -> Triplets:
    """Read triplets from a BEIR folder. Documents judged as not relevant are negatives of their query."""
    found = Triplets(printable(folder.name), "qrels")
    for side, file in ((found.queries, "queries.jsonl"), (found.documents, "corpus.jsonl")):
        for number, line in lines(folder / file):
            name, said = str(line.get("_id") or ""), [str(line.get(key) or "").strip() for key in ("title", "text")]
            if not name or not any(said):
                column = "text" if name else "_id"
                raise UnusableEmbedding(NO_TEXT, name=file, line=f"{number:,}", column=column)
            side.known[name] = len(side.texts)
            side.order.append(len(side.texts))
            side.texts.append(" ".join(filter(None, said)))
            side.ids.append(name)
        check_unique(side.ids, file)
    if not found.queries.texts:
        raise UnusableEmbedding(NO_QUERIES, name=found.name)
    judgments = judgments_file(folder)
    judged = read_qrels(judgments)
    check_ids(judged, found.queries.ids, found.documents.ids, f"qrels/{judgments.name}")
    for query, grades in judged.items():
        for document, grade in grades.items():
            pair = found.queries.known[query], found.documents.known[document]
            (found.positive if grade > 0 else found.negative).append(pair)
    return found


# --- vectors -------------------------------------------------------------------------------------


def _arrays(path: Path, found: Triplets) -> list[np.ndarray]:
    """Return vectors of the queries and the documents, from one array of all, one per tower, or arrays of queries,
    positives and negatives; a row for each distinct text, or for each text of the file."""
    if path.suffix.lower() == ".npy":
        parts = [file_formats.read(path).features]
    else:
        with open_regular(path, file_formats.VECTORS) as file:
            arrays = read_arrays(file, MAX_NPZ)
        wide = {name: x for name, x in arrays.items() if x.ndim > 1 and x.dtype.kind in "fiu"}
        ordered = sorted(wide, key=lambda name: not name.lower().startswith(QUERY))
        parts = [wide[name].reshape(-1, wide[name].shape[-1]).astype(np.float32) for name in ordered]
    if len({part.shape[1] for part in parts}) > 1:
        raise UnusableEmbedding(OTHER_WIDTHS, name=printable(path.name))
    every = np.concatenate(parts) if parts else np.empty((0, 0), np.float32)
    different, all_texts = (
        tuple(len(getattr(side, name)) for side in (found.queries, found.documents)) for name in ("texts", "order")
    )
    for n, m in (different, all_texts):
        if len(every) == n + m and (len(parts) < 2 or len(parts[0]) == n):
            return [every[:n], every[n:]]
    counts = thousands(got=len(every), queries=different[0], documents=different[1])
    raise UnusableEmbedding(COUNTS, name=found.name, vectors=printable(path.name), **counts)


def _encoded(folder: Path, found: Triplets) -> list[np.ndarray]:
    """Encode the texts with a sentence-transformers folder; cached by its content and the texts."""
    from contrastive_core.models import text_tower  # torch

    sides = (found.queries.texts, found.documents.texts)
    if (count := sum(map(len, sides))) > MOST_ENCODED:
        raise UnusableEmbedding(TOO_MANY, name=found.name, **thousands(count=count, most=MOST_ENCODED))
    digest = hashlib.sha256(text_tower.digest_of(folder) + json.dumps(sides).encode()).hexdigest()
    path = data_home() / "encoded_texts" / f"{digest[:24]}.npz"
    try:
        kept = read_npz(path)
        return [kept[name] for name in NAMES]
    except (OSError, ValueError, KeyError):
        features = text_tower.encode_texts(folder, *sides)
        write_npz(path, **dict(zip(NAMES, features, strict=True)))
        return features
