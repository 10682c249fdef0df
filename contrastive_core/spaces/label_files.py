"""Labels and relevance judgments in a separate file. Torch-free.

The files are not trusted: no pickle is opened, and a wrong number of labels is an error."""

import contextlib
import csv
import io
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from contrastive_core.base import json_files
from contrastive_core.base.errors import Damaged, UnusableEmbedding
from contrastive_core.base.json_files import fields, whole
from contrastive_core.base.messages import N_, join, message, printable, sentence, thousands
from contrastive_core.base.storage import open_regular
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.file_formats import class_numbers, cut_texts, explained_errors, npy_head

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
    name, n, ending = printable(path.name), len(rows), path.suffix.lower()
    if ending not in ENDINGS:
        template = N_("label files must end in {endings}; got {name}")
        raise UnusableEmbedding(template, endings=", ".join(ENDINGS), name=f"{name!r}")
    with open_regular(path, LIMIT) as file, explained_errors(path):
        if ending == ".npy":
            shape, _, dtype = npy_head(file, path, os.fstat(file.fileno()).st_size)
            if len([k for k in shape if k != 1]) > 1 or not shape or dtype.kind not in "iubfUS":
                template = N_("{name} must contain (n) labels, as numbers or texts; got {dtype} {shape}")
                raise UnusableEmbedding(template, name=name, dtype=dtype, shape=shape)
            file.seek(0)
            array = np.lib.format.read_array(file, allow_pickle=False).reshape(-1)
            values = cut_texts(np.char.decode(array, "utf-8", "replace") if dtype.kind == "S" else array)
        else:
            values = _labels_of_lines(file.read().decode("utf-8-sig"), ending, name, n)
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


def _labels_of_lines(text: str, ending: str, name: str, n: int) -> np.ndarray:
    """Return the labels of a text, one per line; the first of n + 1 lines is a header. Integers become numbers, NaN for
    missing ones; anything else remains text."""
    if ending == ".txt":
        cells = [[line] for line in text.splitlines()]
    else:
        kind = csv.excel_tab if ending == ".tsv" else csv.excel
        cells = [row or [""] for row in csv.reader(io.StringIO(text), kind)]
    while len(cells) > n and cells[-1] == [""]:  # lines that are empty behind the last
        cells.pop()
    if not cells:
        raise UnusableEmbedding("{name} is empty", name=name)
    heads = [cell.strip().lower() for cell in cells[0]]
    column = next((heads.index(known) for known in KNOWN if known in heads), 0 if len(heads) == 1 else None)
    if column is None:
        template = N_("{name} has {head} columns; the column of labels must be named label in the first line")
        raise UnusableEmbedding(template, name=name, head=len(heads))
    if len(cells) == n + 1 or heads[column] in KNOWN:
        cells = cells[1:]
    texts = [row[column].strip() if column < len(row) else "" for row in cells]
    with contextlib.suppress(ValueError):
        values = np.array([float(text) if text else np.nan for text in texts])
        known = values[np.isfinite(values)]
        if (known == np.round(known)).all():
            return values
    return cut_texts(np.array(texts, np.str_))


# --- relevance judgments ---


Qrels = dict[str, dict[str, int]]  # the grade of each judged document, by query
GRADES = fields(others=fields(others=whole(-json_files.LARGEST)))
FORM = N_('{name} must contain judgments in the form {{"query": {{"document": 1}}}}')
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
    name, found = printable(path.name), Qrels()
    if path.suffix.lower() == ".json":
        try:
            found = json_files.read_json(path, GRADES, LIMIT)
        except Damaged as error:
            raise Damaged(join(". ", [sentence(error), message(FORM, name=name)])) from None
    else:
        with open_regular(path, LIMIT) as file, explained_errors(path):
            text = file.read().decode("utf-8-sig")
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
                pair = {"document": repr(printable(document, 80)), "query": repr(printable(query, 80))}
                raise UnusableEmbedding(TWICE, name=name, **pair)
    if not any(grade > 0 for grades in found.values() for grade in grades.values()):
        raise UnusableEmbedding("{name} judges no document as relevant", name=name)
    return found


def check_ids(
    qrels: Mapping[str, Mapping[str, int]], queries: Collection[str], documents: Collection[str], name: str
) -> None:
    """Check that all judged queries and documents exist. Raises UnusableEmbedding. Args: name: of the file of
    judgments."""
    judged = {document for grades in qrels.values() for document in grades}
    for template, ids, known in ((UNKNOWN_QUERIES, {*qrels}, queries), (UNKNOWN_DOCUMENTS, judged, documents)):
        if unknown := ids - {*known}:
            values = {"count": f"{len(unknown):,}", "example": repr(printable(min(unknown), 80))}
            text = message(template, name=printable(name), **values)
            if "0" in known:
                text = join(". ", [text, NUMBERED])
            raise UnusableEmbedding(text)
