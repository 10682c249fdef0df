"""Labels in a separate file: `.npy` with one label per row, or text and CSV with one per line. The file is not trusted:
no pickle is opened, and a wrong number of labels is an error."""

import contextlib
import csv
import io
import os
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from contrastive_core.base.errors import Damaged, UnusableEmbedding
from contrastive_core.base.safe_files import open_regular, printable, thousands
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
    labels, classes = class_numbers(_countable(values))
    if labels is None or not (labels >= 0).any():
        raise UnusableEmbedding("{name} has no label: all are empty, NaN or below 0", name=name)
    return replace(rows, labels=labels, classes=classes)


def _countable(values: np.ndarray) -> np.ndarray:
    """Return class numbers unchanged, but convert very large ones to names."""
    if values.dtype.kind not in "iuf" or not (large := values > LARGEST).any():
        return values
    if values.dtype.kind == "f" and (values[large] != np.round(values[large])).any():
        return values  # names anyway
    return np.array([f"{v:.0f}" if v >= 0 else "" for v in values.tolist()], np.str_)


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
