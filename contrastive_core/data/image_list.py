"""`csv:PATH`: a list of images as a data set, one a line, with a head line.

Columns: `file` (below the list's own folder), `label`, `split` (train or test; val, valid or
validation where no line says test; without the column a fifth of each class is set aside), and
further ones, kept beside the rows to color maps by.
`csv:PATH#COLUMN` takes the classes from another column. Commas, semicolons or tabs stand between.
What is not there, lies elsewhere or is named twice is left out and listed. Torch-free.
"""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from contrastive_core.data.image_folder import FOR_TEST, LINK, SPLITS, ImageFile, Listing, part
from contrastive_core.errors import BadSetting
from contrastive_core.paths import follow_links
from contrastive_core.storage.regular import printable, read_regular
from contrastive_core.storage.remembered import Stamp, stamp_of

__all__ = ["LABEL", "columns_of", "list_and_column", "listings"]

FILE, LABEL, SPLIT = "file", "label", "split"
MAX_BYTES = 512 << 20
MISSING = "there is no such file"
OUTSIDE = "it lies outside of the list's folder"
OURS = ("id", "ids", "label", "labels", "h", "z", FILE, SPLIT)  # names that rows have already


def list_and_column(where: str) -> tuple[Path, str]:
    """The list and the column of its classes, of what stands behind `csv:`."""
    path, mark, column = where.rpartition("#")
    if not mark or Path(where).expanduser().is_file():
        path, column = where, ""
    return Path(path).expanduser(), column


def columns_of(path: Path) -> list[str]:
    """Names of the columns that classes can be taken from. Raises BadSetting."""
    names, _ = _table(path)
    return [n for n in names if n not in (FILE, SPLIT)]


def listings(where: str) -> dict[str, Listing]:
    """What a list names of each split. Raises BadSetting for what is no such list."""
    path, column = list_and_column(where)
    stamp = stamp_of(path)
    names, lines = _table(path)
    label = column or LABEL
    if column and column not in names:
        raise BadSetting(
            f"{printable(path)} has no column {printable(column)!r}; it has: "
            f"{printable(', '.join(names))}"
        )
    more = tuple(n for n in names if n not in (*OURS, label) and n)
    skipped: dict[str, list[tuple[str, str]]] = {split: [] for split in SPLITS}
    seen = {os.fspath(path): stamp}
    test = _test_of(lines)
    rows = list(_rows(path, lines, label, more, skipped, seen, test))
    classes = _ordered({name for _, name, _ in rows if name})
    number = {name: i for i, name in enumerate(classes)} | {"": -1}
    files = [(split, file._replace(label=number[name])) for file, name, split in rows]
    if SPLIT not in names:
        every = [file for _, file in files]
        chosen = {split: part(every, split) for split in SPLITS}
    else:
        chosen = {split: [f for s, f in files if s == split] for split in SPLITS}
    shown = tuple(printable(c) for c in classes)
    layout = (f"The test images are those of the split {test}: none is named test.",)
    return {
        s: Listing(
            shown, chosen[s], skipped[s], tuple(map(printable, more)),
            layout=layout if test != "test" else (), seen=seen,
        )
        for s in SPLITS
    }  # fmt: skip


def _split_of(line: dict[str, str]) -> str:
    return (line.get(SPLIT) or "train").strip().lower()


def _test_of(lines: list[dict[str, str]]) -> str:
    """What the lines call the test split."""
    named = {_split_of(line) for line in lines}
    return next((name for name in ("test", *FOR_TEST) if name in named), "test")


def _rows(
    path: Path, lines: list[dict[str, str]], label: str, more: tuple[str, ...],
    skipped: dict[str, list[tuple[str, str]]], seen: dict[str, Stamp | None], test: str,
) -> Iterator[tuple[ImageFile, str, str]]:  # fmt: skip
    """Files with class and split; what is left out goes to `skipped` of its split, or of train, the
    folders that were looked into to `seen`."""
    home = _Home(os.path.abspath(path.parent), seen)
    before: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(lines, 2):
        name, text = (line.get(k) or "" for k in (FILE, label))
        split = "test" if (named := _split_of(line)) == test else named
        filename, stamp, reason = home.look(name)
        if split not in SPLITS:
            reason = f"its split is {printable(split, 40)!r}, neither train nor test"
        elif name in before:
            line_before, label_before = before[name]
            other = "" if label_before == text else " with another label"
            reason = f"named before, in line {line_before:,}{other}"
        before.setdefault(name, (number, text))
        shown = printable(name, 4096) or f"line {number:,}"
        if reason:
            skipped[split if split in SPLITS else "train"].append((shown, reason))
            continue
        columns = tuple(line.get(n) or "" for n in more)
        yield ImageFile(shown, filename, -1, stamp, columns), text.strip(), split


class _Home:
    """The list's own folder. Links are looked for once in each folder below it, not once a file."""

    def __init__(self, path: str, seen: dict[str, Stamp | None]) -> None:
        self._seen = seen
        self._path, self._real = path, os.path.realpath(path)
        self._inside = os.path.join(path, "")  # what paths below it begin with
        self._is_plain: dict[str, bool] = {}

    def look(self, name: str) -> tuple[str, str, str]:
        """A file's path, its size and time, and why it is not taken ("" where it is)."""
        filename = os.path.join(self._path, name)
        try:
            if not name.strip():
                return filename, "", "no file is named"
            if not follow_links():
                filename = os.path.normpath(filename)  # `link/..` would lead elsewhere
                if reason := self._problem(filename):
                    return filename, "", reason
            if (folder := os.path.dirname(filename)) not in self._seen:
                self._seen[folder] = stamp_of(Path(folder))
            about = os.stat(filename)
        except (OSError, ValueError):  # not there, too long, a zero byte, links in a circle
            return filename, "", MISSING
        is_file = stat.S_ISREG(about.st_mode)
        return filename, f"{about.st_size}\0{about.st_mtime_ns}", "" if is_file else MISSING

    def _problem(self, plain: str) -> str:
        if not plain.startswith(self._inside):
            return MISSING if plain == self._path else OUTSIDE
        folder = os.path.dirname(plain)
        if folder not in self._is_plain:
            below = folder[len(self._path) :]
            self._is_plain[folder] = os.path.realpath(folder) == self._real + below
        if self._is_plain[folder] and not os.path.islink(plain):
            return ""
        return LINK if os.path.exists(plain) else "a link to nothing"


def _table(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    shown = printable(path)
    try:
        text = read_regular(path, MAX_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        raise BadSetting(f"there is no list {shown}") from None
    except (OSError, ValueError) as error:
        raise BadSetting(f"cannot read {shown}: {printable(error)}") from None
    head = text.partition("\n")[0]
    between = max(",;\t", key=head.count)
    try:
        reader = csv.DictReader(text.splitlines(), delimiter=between)
        names = [n.strip() for n in reader.fieldnames or ()]
        reader.fieldnames = names
        lines = list(reader)
    except csv.Error as error:
        raise BadSetting(f"cannot read {shown}: {printable(error)}") from None
    if FILE not in names:
        raise BadSetting(f"{shown} needs a column {FILE!r} in its first line")
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise BadSetting(f"{shown} has two columns {printable(twice)!r}")
    return names, lines


def _ordered(names: set[str]) -> list[str]:
    """Classes in their order: numbers by size."""
    numbers = all(n.removeprefix("-").isdecimal() for n in names)
    return sorted(names, key=int) if numbers else sorted(names)
