"""CSV files with a head line that a person wrote: lists of images and of samples."""

from __future__ import annotations

import csv
from pathlib import Path

from contrastive_core.errors import BadSetting
from contrastive_core.storage.regular_files import printable, read_regular

MAX_BYTES = 512 << 20  # a few million lines


def read_text(path: str | Path) -> str:
    """Return the text of a UTF-8 file. Raises BadSetting."""
    try:
        return read_regular(path, MAX_BYTES).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise BadSetting("cannot read {path}: {error}", path=printable(path), error=printable(error)) from None


def read_table(path: str | Path, *needed: str) -> tuple[list[str], list[dict[str, str]]]:
    """Return the names of the columns, and each line by them; commas, semicolons or tabs stand between. Raises:
    BadSetting for what is no such file, without one of the columns `needed`, or with one twice."""
    text, shown = read_text(path), printable(path)
    between = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.DictReader(text.splitlines(), delimiter=between)
    try:
        names = reader.fieldnames = [n.strip() for n in reader.fieldnames or ()]
        lines = list(reader)
    except csv.Error as error:
        raise BadSetting("cannot read {path}: {error}", path=shown, error=printable(error)) from None
    for column in needed:
        if column not in names:
            raise BadSetting("{path} needs a column {column} in its first line", path=shown, column=f"{column!r}")
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise BadSetting("{shown} has two columns {twice}", shown=shown, twice=f"{printable(twice)!r}")
    return names, lines
