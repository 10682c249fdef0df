"""`csv:PATH`: a list of images as a data set, one per line, with a header line.

Columns: `file` (relative to the list's folder), `label`, `split` (train or test; val, valid or
validation if no line says test; without this column a fifth of each class is held out), and
further ones, kept as values per image for coloring maps.

`csv:PATH#COLUMN` takes the classes from another column. Commas, semicolons or tabs separate columns.
Missing, outside and duplicate files are left out and listed."""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, message
from contrastive_core.base.paths import follow_links
from contrastive_core.base.safe_files import FileStamp, file_stamp, printable, read_regular
from contrastive_core.data.image_folder import FOR_TEST, LINK, LONGEST_ID, SPLITS, ImageFile, Listing, part

FILE, LABEL, SPLIT = "file", "label", "split"
MISSING = N_("there is no such file")
OUTSIDE = N_("it is outside the list's folder")
Line = tuple[str, dict[str, str]]  # its split, and its values by column
OURS = ("id", "ids", "label", "labels", "h", "z", FILE, SPLIT, "")  # names that rows have already
MAX_BYTES = 512 << 20  # a few million lines


def list_and_column(where: str) -> tuple[Path, str]:
    """Split the text after `csv:` into the path of the list and the column of its classes ("" for the default)."""
    path, mark, column = where.rpartition("#")
    if not mark or Path(where).expanduser().is_file():
        path, column = where, ""
    return Path(path).expanduser(), column


def columns_of(path: Path) -> list[str]:
    """Return the columns that can hold classes. Raises BadSetting."""
    return [n for n in _read_list(path)[0] if n not in (FILE, SPLIT)]


def _read_list(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    if not path.exists():
        raise BadSetting("there is no list {shown}", shown=printable(path))
    return read_table(path, FILE)


def listings(where: str) -> dict[str, Listing]:
    """List the images of each split. Raises BadSetting for a file that is not an image list."""
    path, column = list_and_column(where)
    seen = {os.fspath(path): file_stamp(path)}
    names, lines = _read_list(path)
    if column and column not in names:
        values = {"path": printable(path), "column": f"{printable(column)!r}", "names": printable(", ".join(names))}
        raise BadSetting("{path} has no column {column}; it has: {names}", **values)
    label, splits = column or LABEL, [(line.get(SPLIT) or "train").strip().lower() for line in lines]
    test = next((name for name in ("test", *FOR_TEST) if name in splits), "test")
    splits = ["test" if split == test else split for split in splits]
    said = message("The test images come from the split {test}, because no split is named test.", test=test)
    more = tuple(n for n in names if n not in (*OURS, label))
    columns, layout = tuple(map(printable, more)), (said,) if test != "test" else ()
    listed = {split: Listing(column_names=columns, layout=layout, seen=seen) for split in SPLITS}
    rows = list(_rows(_Home(path, seen), zip(splits, lines, strict=True), label, more, listed))
    named = {name for _, name, _ in rows if name}
    are_numbers = all(n.removeprefix("-").isdecimal() for n in named)
    classes = sorted(named, key=int if are_numbers else None)
    number = {name: i for i, name in enumerate(classes)} | {"": -1}
    files = [(split, file._replace(label=number[name])) for split, name, file in rows]
    for split, listing in listed.items():
        listing.classes = tuple(map(printable, classes))
        is_split = SPLIT in names
        listing.files = [f for s, f in files if s == split] if is_split else part([f for _, f in files], split)
    return listed


def _rows(
    home: _Home, lines: Iterable[Line], label: str, more: tuple[str, ...], listed: dict[str, Listing]
) -> Iterator[tuple[str, str, ImageFile]]:
    """Yield split, class and file of each valid line; skipped lines are added to their split, or to train."""
    before: dict[str, tuple[int, str]] = {}
    for number, (split, line) in enumerate(lines, 2):
        name, text = (line.get(k) or "" for k in (FILE, label))
        filename, stamp, reason = home.look(name)
        if split not in SPLITS:
            reason = message("its split is {split}, neither train nor test", split=f"{printable(split, 40)!r}")
        elif name in before:
            line_before, label_before = before[name]
            template = N_("already listed in line {line_before} with a different label")
            if label_before == text:
                template = N_("already listed in line {line_before}")
            reason = message(template, line_before=f"{line_before:,}")
        before.setdefault(name, (number, text))
        shown = printable(name, LONGEST_ID) or message("line {number}", number=f"{number:,}")
        if reason:
            listed.get(split, listed["train"]).skipped.append((shown, reason))
        else:
            columns = tuple(line.get(n) or "" for n in more)
            yield split, text.strip(), ImageFile(shown, filename, -1, stamp, columns)


class _Home:
    """The folder of an image list. Links are checked once per subfolder, not once per file."""

    def __init__(self, path: Path, seen: dict[str, FileStamp | None]) -> None:
        self._seen = seen  # receives the stamps of the read folders
        self._path = os.path.abspath(path.parent)
        self._real, self._inside = os.path.realpath(self._path), os.path.join(self._path, "")
        self._is_plain: dict[str, bool] = {}

    def look(self, name: str) -> tuple[str, str, str]:
        """Return a file's path, its size and time, and the reason to skip it ("" for none)."""
        filename = os.path.join(self._path, name)
        try:
            if not name.strip():
                return filename, "", N_("no file name given")
            if not follow_links():
                filename = os.path.normpath(filename)  # `link/..` would point elsewhere
                if reason := self._problem(filename):
                    return filename, "", reason
            if (folder := os.path.dirname(filename)) not in self._seen:
                self._seen[folder] = file_stamp(Path(folder))
            status = os.stat(filename)
        except (OSError, ValueError):  # missing, too long, a zero byte, circular links
            return filename, "", MISSING
        is_file = stat.S_ISREG(status.st_mode)
        return filename, f"{status.st_size}\0{status.st_mtime_ns}", "" if is_file else MISSING

    def _problem(self, plain: str) -> str:
        if not plain.startswith(self._inside):
            return MISSING if plain == self._path else OUTSIDE
        folder = os.path.dirname(plain)
        if folder not in self._is_plain:
            self._is_plain[folder] = os.path.realpath(folder) == self._real + folder[len(self._path) :]
        if self._is_plain[folder] and not os.path.islink(plain):
            return ""
        return LINK if os.path.exists(plain) else N_("a link to nothing")


def read_text(path: str | Path) -> str:
    """Read the text of a UTF-8 file. Raises BadSetting."""
    try:
        return read_regular(path, MAX_BYTES).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise BadSetting("cannot read {path}: {error}", path=printable(path), error=printable(error)) from None


def read_table(path: str | Path, *needed: str) -> tuple[list[str], list[dict[str, str]]]:
    """Read a table separated by commas, semicolons or tabs: the names of the columns, and each line by column.
    Raises: BadSetting for other files, a missing column of `needed`, or a duplicate column."""
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
