"""Labels and relevance judgments in a separate file. Torch-free.

Labels: `.npy` with one label per row, or text and CSV with one per line. Judgments say which documents answer which
query, in the format of BEIR (TSV with a header), TREC or JSON. The file is not trusted: no pickle is opened, and a
wrong number of labels is an error."""

import contextlib
import csv
import io
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from contrastive_core.base.errors import Damaged, UnusableEmbedding
from contrastive_core.base.messages import N_, join, message, printable, thousands
from contrastive_core.base.storage import open_regular, read_regular
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.file_formats import class_numbers, cut_texts, npy_head

ENDINGS = (".npy", ".txt", ".csv", ".tsv")
LIMIT = 400 << 20  # bytes of such a file
LARGEST = 1_000_000  # of numbers that count classes
KNOWN = ("label", "labels", "y", "class")  # columns of a table that are taken


def labeled(rows: EmbeddingSet, path: str | Path) -> EmbeddingSet:
    """Return the rows with the labels of a file, in its order: numbers, or names of classes. An empty label, NaN or a
    number below 0 means no label.

    Args: path: `.npy` of (n) numbers or texts; `.txt`, `.csv` or `.tsv` with a label on each of n
        lines, with an optional header; with several columns, the one named label.
    Raises: UnusableEmbedding, NotRegular or Damaged with a sentence; FileNotFoundError."""
    path = Path(path)
    name, n = printable(path.name), len(rows)
    if path.suffix.lower() not in ENDINGS:
        facts = {"endings": ", ".join(ENDINGS), "name": f"{name!r}"}
        raise UnusableEmbedding("label files must end in {endings}; got {name}", **facts)
    with open_regular(path, LIMIT) as file:
        values = _array(file, path) if path.suffix.lower() == ".npy" else _lines(file.read(), path, n)
    if len(values) != n:
        counts = thousands(values=len(values), n=n)
        raise UnusableEmbedding("{name} has {values} labels, but there are {n} rows of embeddings", name=name, **counts)
    is_large = values > LARGEST if values.dtype.kind in "iuf" else np.zeros(n, bool)
    if is_large.any() and (values[is_large] == np.round(values[is_large])).all():  # no class numbers, but names
        values = np.array([f"{v:.0f}" if v >= 0 else "" for v in values.tolist()], np.str_)
    labels, classes = class_numbers(values)
    if labels is None or not (labels >= 0).any():
        raise UnusableEmbedding("{name} has no label: all are empty, NaN or below 0", name=name)
    return replace(rows, labels=labels, classes=classes)


def _array(file: BinaryIO, path: Path) -> np.ndarray:
    """Return the labels (n) of a `.npy` file; a column (n, 1) is accepted."""
    name = printable(path.name)
    shape, _, dtype = npy_head(file, path, os.fstat(file.fileno()).st_size)
    if len([n for n in shape if n != 1]) > 1 or not shape or dtype.kind not in "iubfUS":
        facts = {"name": name, "dtype": dtype, "shape": shape}
        raise UnusableEmbedding("{name} must contain (n) labels, as numbers or texts; got {dtype} {shape}", **facts)
    file.seek(0)
    try:
        values = np.lib.format.read_array(file, allow_pickle=False).reshape(-1)
    except ValueError as error:
        raise Damaged("{name} cannot be read: {error}", name=name, error=printable(error)) from None
    if dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    return cut_texts(values) if values.dtype.kind == "U" else values


def _lines(content: bytes, path: Path, n: int) -> np.ndarray:
    """Return the labels of a text, one per line; the first of n + 1 lines is a header."""
    name = printable(path.name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnusableEmbedding("{name} is not text in UTF-8", name=name) from None
    if path.suffix.lower() == ".txt":
        cells = [[line] for line in text.splitlines()]
    else:
        kind = csv.excel_tab if path.suffix.lower() == ".tsv" else csv.excel
        try:
            cells = [row or [""] for row in csv.reader(io.StringIO(text), kind)]
        except csv.Error as error:
            raise Damaged("{name} cannot be read: {error}", name=name, error=printable(error)) from None
    while len(cells) > n and cells[-1] == [""]:  # lines that are empty behind the last
        cells.pop()
    if not cells:
        raise UnusableEmbedding("{name} is empty", name=name)
    column = _column(cells[0], name)
    if len(cells) == n + 1 or cells[0][column].strip().lower() in KNOWN:
        cells = cells[1:]
    return _numbers([row[column].strip() if column < len(row) else "" for row in cells])


def _column(head: list[str], name: str) -> int:
    """Return the index of the column of labels."""
    if len(head) == 1:
        return 0
    names = [cell.strip().lower() for cell in head]
    known = next((k for k in KNOWN if k in names), None)
    if known is None:
        values = {"name": name, "head": len(head)}
        raise UnusableEmbedding(
            "{name} has {head} columns; the column of labels must be named label in the first line", **values
        )
    return names.index(known)


def _numbers(texts: list[str]) -> np.ndarray:
    """Return integers as numbers, NaN for missing ones; otherwise the texts."""
    with contextlib.suppress(ValueError):
        values = np.array([float(t) if t else np.nan for t in texts])
        whole = values[np.isfinite(values)]
        if (whole == np.round(whole)).all():
            return values
    return cut_texts(np.array(texts, np.str_))


# --- relevance judgments ---


Qrels = dict[str, dict[str, int]]  # the grade of each judged document, by query
LINE = N_(
    "{name}: line {line} is not a judgment ({text}); expected query, document and a whole number, "
    "with tabs between (BEIR), or query, 0, document and a whole number (TREC)"
)
TWICE = N_("{name} judges document {document} of query {query} twice, with different numbers")
UNKNOWN_QUERIES = N_("{name} refers to queries that are not in the data: {count}, for example {example}")
NUMBERED = N_(
    "Queries and documents of triplets without ids are numbered from 0. The fields id and positive_id of a line name "
    "its query and its answer"
)
UNKNOWN_DOCUMENTS = N_("{name} refers to documents that are not in the data: {count}, for example {example}")


def judgments_file(path: str | Path) -> Path:
    """Return the file of judgments that a path names: itself, or `qrels/test.tsv`, `dev.tsv` or `train.tsv` of a BEIR
    folder, the first that exists."""
    path = Path(path)
    files = [path / "qrels" / f"{split}.tsv" for split in ("test", "dev", "train")]
    return next((file for file in files if file.is_file()), files[0]) if path.is_dir() else path


def read_qrels(path: str | Path) -> Qrels:
    """Return the grade of each judged document, by query; 0 or less is "not relevant".

    Args: path: three columns with tabs between (query-id, corpus-id, score; a first line of names is skipped), four
        with spaces or tabs (query, iteration, document, grade), JSON: `{query: {document: grade}}`, or a BEIR folder.
    Raises: Damaged, UnusableEmbedding or NotRegular with a sentence; FileNotFoundError."""
    path = judgments_file(path)
    name = printable(path.name)
    try:
        text = read_regular(path, LIMIT).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Damaged("{name} is not text in UTF-8", name=name) from None
    if path.suffix.lower() == ".json":
        found: Qrels | None = None
        with contextlib.suppress(ValueError, AttributeError, RecursionError):
            read: Any = json.loads(text)
            if all(type(grade) is int for grades in read.values() for grade in grades.values()):
                found = {str(query): dict(grades) for query, grades in read.items()}
        if found is None:
            text = N_('{name} must contain judgments in the form {{"query": {{"document": 1}}}}')
            raise Damaged(text, name=name)
    else:
        found = _of_lines(text, name)
    if not any(grade > 0 for grades in found.values() for grade in grades.values()):
        raise UnusableEmbedding("{name} judges no document as relevant", name=name)
    return found


def check_ids(
    qrels: Mapping[str, Mapping[str, int]], queries: Collection[str], documents: Collection[str], name: str
) -> None:
    """Check that all judged queries and documents exist. Raises UnusableEmbedding. Args: name: of the file of
    judgments."""
    judged = {document for grades in qrels.values() for document in grades}
    for sentence, ids, known in ((UNKNOWN_QUERIES, {*qrels}, queries), (UNKNOWN_DOCUMENTS, judged, documents)):
        if unknown := ids - {*known}:
            values = {"count": f"{len(unknown):,}", "example": repr(printable(min(unknown), 80))}
            text = message(sentence, name=printable(name), **values)
            if "0" in known:
                text = join(". ", [text, NUMBERED])
            raise UnusableEmbedding(text)


def _of_lines(text: str, name: str) -> Qrels:
    found: Qrels = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")] if line.count("\t") == 2 else line.split()
        try:
            query, document, grade = cells[0], cells[-2], int(cells[-1])
            if len(cells) not in (3, 4) or not query or not document:
                raise ValueError
        except (ValueError, IndexError):
            if number == 1 and len(cells) in (3, 4) and cells[-1].isalpha():
                continue  # the names of the columns
            raise Damaged(LINE, name=name, line=f"{number:,}", text=repr(printable(line, 80))) from None
        if found.setdefault(query, {}).setdefault(document, grade) != grade:
            raise UnusableEmbedding(
                TWICE, name=name, document=repr(printable(document, 80)), query=repr(printable(query, 80))
            )
    return found
