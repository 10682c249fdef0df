"""`csv:PATH`: a list of images as a data set, one a line, with a head line.

Columns: `file` (below the list's own folder), `label`, `split` (train or test; val, valid or
validation where no line says test; without the column a fifth of each class is set aside), and
further ones, kept beside the rows to color maps by.
`csv:PATH#COLUMN` takes the classes from another column. Commas, semicolons or tabs stand between.
What is not there, lies elsewhere or is named twice is left out and listed.
"""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from contrastive_core.data.image_folder import FOR_TEST, LINK, SPLITS, ImageFile, Listing, part
from contrastive_core.errors import BadSetting
from contrastive_core.messages import N_, message
from contrastive_core.paths import follow_links
from contrastive_core.storage.file_cache import FileStamp, file_stamp
from contrastive_core.storage.regular_files import printable, read_regular

__all__ = ["LABEL", "columns_of", "list_and_column", "listings"]

FILE, LABEL, SPLIT = "file", "label", "split"
MAX_BYTES = 512 << 20
MISSING = N_("there is no such file")
OUTSIDE = N_("it lies outside of the list's folder")
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
    stamp = file_stamp(path)
    names, lines = _table(path)
    label = column or LABEL
    _check_column(path, column, names)
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
    layout = (message("The test images are those of the split {test}: none is named test.", test=test),)
    return {
        s: Listing(
            shown,
            chosen[s],
            skipped[s],
            tuple(map(printable, more)),
            layout=layout if test != "test" else (),
            seen=seen,
        )
        for s in SPLITS
    }


def _check_column(path: Path, column: str, names: list[str]) -> None:
    if column and column not in names:
        raise BadSetting(
            message(
                "{path} has no column {column}; it has: {names}",
                path=printable(path),
                column=f"{printable(column)!r}",
                names=printable(", ".join(names)),
            )
        )


def _split_of(line: dict[str, str]) -> str:
    return (line.get(SPLIT) or "train").strip().lower()


def _test_of(lines: list[dict[str, str]]) -> str:
    """What the lines call the test split."""
    named = {_split_of(line) for line in lines}
    return next((name for name in ("test", *FOR_TEST) if name in named), "test")


def _rows(
    path: Path,
    lines: list[dict[str, str]],
    label: str,
    more: tuple[str, ...],
    skipped: dict[str, list[tuple[str, str]]],
    seen: dict[str, FileStamp | None],
    test: str,
) -> Iterator[tuple[ImageFile, str, str]]:
    """Files with class and split; what is left out goes to `skipped` of its split, or of train, the
    folders that were looked into to `seen`."""
    home = _Home(os.path.abspath(path.parent), seen)
    before: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(lines, 2):
        name, text = (line.get(k) or "" for k in (FILE, label))
        split = "test" if (named := _split_of(line)) == test else named
        filename, stamp, reason = home.look(name)
        if split not in SPLITS:
            reason = message("its split is {split}, neither train nor test", split=f"{printable(split, 40)!r}")
        elif name in before:
            line_before, label_before = before[name]
            other = "" if label_before == text else message(" with another label")
            reason = message("named before, in line {line_before}{other}", line_before=f"{line_before:,}", other=other)
        before.setdefault(name, (number, text))
        shown = printable(name, 4096) or message("line {number}", number=f"{number:,}")
        if reason:
            skipped[split if split in SPLITS else "train"].append((shown, reason))
            continue
        columns = tuple(line.get(n) or "" for n in more)
        yield ImageFile(shown, filename, -1, stamp, columns), text.strip(), split


class _Home:
    """The list's own folder. Links are looked for once in each folder below it, not once a file."""

    def __init__(self, path: str, seen: dict[str, FileStamp | None]) -> None:
        self._seen = seen
        self._path, self._real = path, os.path.realpath(path)
        self._inside = os.path.join(path, "")  # what paths below it begin with
        self._is_plain: dict[str, bool] = {}

    def look(self, name: str) -> tuple[str, str, str]:
        """A file's path, its size and time, and why it is not taken ("" where it is)."""
        filename = os.path.join(self._path, name)
        try:
            if not name.strip():
                return filename, "", N_("no file is named")
            if not follow_links():
                filename = os.path.normpath(filename)  # `link/..` would lead elsewhere
                if reason := self._problem(filename):
                    return filename, "", reason
            if (folder := os.path.dirname(filename)) not in self._seen:
                self._seen[folder] = file_stamp(Path(folder))
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
        return LINK if os.path.exists(plain) else N_("a link to nothing")


def _table(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    shown = printable(path)
    try:
        text = read_regular(path, MAX_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        raise BadSetting(message("there is no list {shown}", shown=shown)) from None
    except (OSError, ValueError) as error:
        raise BadSetting(message("cannot read {shown}: {error}", shown=shown, error=printable(error))) from None
    head = text.partition("\n")[0]
    between = max(",;\t", key=head.count)
    try:
        reader = csv.DictReader(text.splitlines(), delimiter=between)
        names = [n.strip() for n in reader.fieldnames or ()]
        reader.fieldnames = names
        lines = list(reader)
    except csv.Error as error:
        raise BadSetting(message("cannot read {shown}: {error}", shown=shown, error=printable(error))) from None
    if FILE not in names:
        raise BadSetting(message("{shown} needs a column {file} in its first line", shown=shown, file=f"{FILE!r}"))
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise BadSetting(message("{shown} has two columns {twice}", shown=shown, twice=f"{printable(twice)!r}"))
    return names, lines


def _ordered(names: set[str]) -> list[str]:
    """Classes in their order: numbers by size."""
    numbers = all(n.removeprefix("-").isdecimal() for n in names)
    return sorted(names, key=int) if numbers else sorted(names)
