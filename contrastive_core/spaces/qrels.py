"""Relevance judgments (which documents answer which query) in BEIR format (TSV with a header), TREC or JSON.
Torch-free."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from contrastive_core.base.errors import Damaged, UnusableEmbedding
from contrastive_core.base.messages import N_, join, message
from contrastive_core.base.safe_files import printable, read_regular

ENDINGS = (".tsv", ".txt", ".qrels", ".json")
LIMIT = 400 << 20  # bytes of such a file
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
    found = _of_json(text, name) if path.suffix.lower() == ".json" else _of_lines(text, name)
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


def _of_json(text: str, name: str) -> Qrels:
    try:
        read: Any = json.loads(text)
        if all(type(grade) is int for grades in read.values() for grade in grades.values()):
            return {str(query): dict(grades) for query, grades in read.items()}
    except (ValueError, AttributeError, RecursionError):
        pass
    raise Damaged(N_('{name} must contain judgments in the form {{"query": {{"document": 1}}}}'), name=name)
