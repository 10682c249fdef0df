"""Columns of a table: which of them are the vectors, and what the others hold.

The vectors are one column of lists of equal length (parquet_files.py), or the numbered columns (d0,
d1, …), or all columns of numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.errors import UnusableEmbedding
from contrastive_core.messages import message
from contrastive_core.storage.regular_files import printable

__all__ = ["BATCH", "MAX_COLUMNS", "Columns", "Table", "TableLimits", "Texts", "columns_provenance", "vector_columns"]

MAX_COLUMNS = 20_000
BATCH = 4096  # rows that are read at a time
KNOWN = ("id", "ids", "label", "labels", "y", "class", "split", "embedding", "features")
Columns = dict[str, Any]  # arrays (n) of numbers, or Texts
Table = tuple[np.ndarray, Columns, dict[str, Any]]  # vectors (n, d), columns, origin


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of texts: the different ones, and each row's place among them (n)."""

    unique: Sequence[str]
    index: np.ndarray

    def __len__(self) -> int:
        return len(self.index)


@dataclass(frozen=True)
class TableLimits:
    """Bytes that a table may take: its vectors in float32, and what else it says of the rows."""

    vectors: int
    columns: int


def vector_columns(numbers: Sequence[str], names: Collection[str], path: Path, leave_out: Sequence[str]) -> list[str]:
    """Which columns are the vectors, where no column of lists holds them: the numbered ones among
    the columns of numbers, or all of these. Args: names: all columns."""
    for name in leave_out:
        if name not in names:
            raise UnusableEmbedding(
                message("{name} has no column {column}", name=path.name, column=f"{printable(name, 80)!r}")
            )
    numeric = [name for name in numbers if name not in (*KNOWN, *leave_out)]
    if not numeric:
        raise UnusableEmbedding(message("{name} has no columns of numbers to take as vectors", name=path.name))
    taken = _numbered(numeric) or numeric
    if len(taken) < 2:
        raise UnusableEmbedding(
            message(
                "{name} has one column of numbers that can be a vector, {taken}; a vector takes two or more",
                name=path.name,
                taken=f"{printable(taken[0], 80)!r}",
            )
        )
    return taken


def columns_provenance(taken: Sequence[str]) -> dict[str, Any]:
    """Which columns the vectors are, for their origin."""
    return {"columns": [printable(name, 80) for name in taken]} if taken else {}


def _numbered(names: Sequence[str]) -> list[str]:
    """The longest series d0, d1, … of columns, in the order of their numbers; [] where there is
    none: a series has two columns or more, and at least every second of its numbers."""
    series: dict[str, dict[int, str]] = {}
    for name in names:
        digits = len(name) - len(name.rstrip("0123456789"))
        if 0 < digits < 10:
            series.setdefault(name[:-digits], {})[int(name[-digits:])] = name
    full = [s for s in series.values() if len(s) > 1 and 2 * len(s) > max(s) - min(s)]
    longest = max(full, key=len, default={})
    return [longest[number] for number in sorted(longest)]
