"""Listings of the image files of a data set, by split: of a folder (`folder:PATH`) or of a list (`csv:PATH`).
docs/guides/image_folder.md and docs/reference/files.md describe their formats.

Links, to files or to folders, are followed only if the environment variable CONTRASTIVE_LAB_FOLLOW_LINKS is 1;
otherwise they are left out and listed. Pipes, devices and sockets are never opened."""

from __future__ import annotations

import dataclasses
import os
import stat
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, join, message, printable
from contrastive_core.base.storage import FileStamp, file_stamp, follow_links, read_table
from contrastive_core.data.image_decoding import ENDINGS

ARRAYS = (".npy",)
SPLITS = ("train", "test")
FOR_TEST = ("val", "valid", "validation")  # names of the test part, in this order, if there is no test/
BESIDE = frozenset(
    """
.txt .md .rst .json .jsonl .yaml .yml .toml .ini .cfg .xml .csv .tsv .xls .xlsx .parquet .html .htm
.pdf .doc .docx .db .sqlite .log .lst .py .ipynb .sh .bat .m .mat .npz .pkl .h5 .hdf5 .pt .pth .zip
.tar .gz .tgz .7z .rar .bz2 .xz .md5 .sha1 .sha256 .lnk .url .bak .tmp .part .lock .names .cache
""".split()
)  # other files that are common next to images
NAMES = ("readme", "license", "makefile")  # names without an ending
ENDINGS_TOLD, LONGEST = 3, 9  # maximum endings to name, and characters of one
SEED, TEST = 0, 0.2
LINK = N_("a link; links are followed only with CONTRASTIVE_LAB_FOLLOW_LINKS=1")
LONGEST_ID = 4096  # characters


class ImageFile(NamedTuple):
    """One file of a split; a tuple with its path as text, because there may be a million."""

    id: str
    filename: str
    label: int  # −1: none
    stamp: str  # size and time
    columns: tuple[str, ...] = ()  # further values from a list of images

    @property
    def path(self) -> Path:
        return Path(self.filename)

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return int(self.stamp.partition("\0")[0])


@dataclass
class Listing:
    """Images below a folder by class, and the skipped files with the reason. `others` counts unsupported files by
    ending; `layout` holds sentences on how the splits were found."""

    classes: tuple[str, ...] = ()
    files: list[ImageFile] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    column_names: tuple[str, ...] = ()  # of the files' `columns`
    others: Counter[str] = field(default_factory=Counter)
    layout: tuple[str, ...] = ()
    seen: dict[str, FileStamp | None] = field(default_factory=dict)  # stamps of folders before the listing

    def columns(self, files: Sequence[ImageFile]) -> dict[str, np.ndarray]:
        """Return further values of files by name, as numbers (NaN for empty ones) if all are numeric, else as text."""
        found: dict[str, np.ndarray] = {}
        for i, name in enumerate(self.column_names):
            values = [file.columns[i] for file in files]
            try:
                found[name] = np.array([value.strip() or "nan" for value in values], np.float64)
            except ValueError:
                found[name] = np.array(values)
        return found


def listings_of_folder(path: str) -> dict[str, Listing]:
    """List a folder by split; arrays (`.npy`) count only if there are no pictures. Raises BadSetting."""
    root = Path(path).expanduser()
    if not root.is_dir():
        raise BadSetting("there is no folder {path}", path=printable(path))
    pictures = _listings(root, ENDINGS)
    if any(listing.files for listing in pictures.values()):
        return pictures
    arrays = _listings(root, ARRAYS)
    return arrays if any(listing.files for listing in arrays.values()) else pictures


def _listings(root: Path, endings: Collection[str]) -> dict[str, Listing]:
    """List classes, labeled files and skipped files of each split."""
    seen = {os.fspath(p): file_stamp(p) for p in (root, *(root / name for name in FOR_TEST))}
    folders, layout = _parts(root, endings)
    if "test" not in folders:
        whole = labeled(folders.get("train", root), endings)
        whole.layout, whole.seen = layout, seen | whole.seen
        return {s: dataclasses.replace(whole, files=part(whole.files, s)) for s in SPLITS}
    each = {name: labeled(folder, endings) for name, folder in folders.items()}
    classes = tuple(sorted({c for listing in each.values() for c in listing.classes}))
    for listing in each.values():
        if listing.classes != classes:  # this split lacks a class of the other
            labels = [*map(classes.index, listing.classes), -1]
            listing.files = [f._replace(label=labels[f.label]) for f in listing.files]
        listing.classes, listing.layout, listing.seen = classes, layout, seen | listing.seen
    return each


def why_empty(path: str, listing: Listing, split: str) -> str:
    """Return the error text for a folder without images in a split."""
    links = sum(reason == LINK for _, reason in listing.skipped)
    text = message(
        "{folder} has no images for {split}. It needs one folder per class, or only images, or folders "
        "train/ and test/ (or val/) organized either way",
        folder=printable(Path(path).expanduser()),
        split=split,
    )
    left_out = [message("{links} links were left out ({link})", links=f"{links:,}", link=LINK)] if links else []
    return join("; ", [text, *left_out, *(one.removesuffix(".") for one in remarks(listing))])


def remarks(*listings: Listing) -> list[str]:
    """Return sentences about how the splits were found, and about files skipped for their ending."""
    layout = dict.fromkeys(one for listing in listings for one in listing.layout)
    each = {id(listing.others): listing.others for listing in listings}  # both splits may share one
    counts = sum(each.values(), Counter[str]())
    plain = [e for e, _ in counts.most_common() if len(e) <= LONGEST and e.isascii() and (not e or e[1:].isalnum())]
    told = [(ending or N_("no extension"), counts[ending]) for ending in plain[:ENDINGS_TOLD]]
    if remaining := counts.total() - sum(n for _, n in told):
        told.append((N_("other extensions"), remaining))
    listed = join(", ", [message("{ending} ({n})", ending=ending, n=f"{n:,}") for ending, n in told])
    return [*layout, *([message("Files of unsupported types are skipped: {listed}.", listed=listed)] if told else [])]


def _parts(root: Path, endings: Collection[str]) -> tuple[dict[str, Path], tuple[str, ...]]:
    """Return the folders of train and test, if there are such parts, and sentences about them."""
    train, test = root / "train", "test"
    if not _is_folder(train):
        return {}, ()
    left_out = [n for n in FOR_TEST if _has_images(root / n, endings)]
    if not _is_folder(root / "test"):
        others = (p for p in root.iterdir() if p.name[0] != "." and p.name not in ("train", *left_out))
        if any(_has_images(p, endings) for p in others) or not _has_images(train, endings):
            return {}, ()  # classes with the names of splits
        if not left_out:
            return {"train": train}, (
                N_("All images come from train/. One fifth is held out because there is no test/."),
            )
        test, *left_out = left_out
    said = (
        [message("The test images come from {test}/, because there is no test/.", test=test)] if test != "test" else []
    )
    said += [message("{n}/ is not used: images come only from train/ and {test}/.", n=n, test=test) for n in left_out]
    return {"train": train, "test": root / test}, tuple(said)


def _has_images(folder: Path, endings: Collection[str]) -> bool:
    """Return whether a folder has files with these endings at any depth."""
    return _is_folder(folder) and any(_ending(name) in endings for *_, names in os.walk(folder) for name in names)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and (follow_links() or not path.is_symlink())


def labeled(folder: Path, endings: Collection[str] = ENDINGS) -> Listing:
    """List a class for each subfolder with images; without such subfolders, images without labels."""
    listing = Listing(seen={os.fspath(folder): file_stamp(folder)})
    with os.scandir(folder) as entries:
        folders = sorted(folder / e.name for e in entries if _leads_to_folder(e) and e.name[0] != ".")
    classes: list[str] = []
    for sub in folders:
        if not _is_folder(sub):
            listing.skipped.append((printable(sub.name, LONGEST_ID), LINK))
        elif images := _images(sub, f"{sub.name}/", len(classes), listing, endings):
            listing.files += images
            classes.append(printable(sub.name))
    if not classes:
        listing.files = _images(folder, "", -1, listing, endings)
    listing.classes = tuple(classes)
    return listing


def _images(folder: Path, prefix: str, label: int, listing: Listing, endings: Collection[str]) -> list[ImageFile]:
    """Return a folder's images by name; those of a class (`label` ≥ 0) at any depth.

    Args: prefix: of the ids, with a slash at its end; listing: receives the skipped files."""
    files, waiting, visited = [], [(os.fspath(folder), prefix)], set()
    while waiting:
        inside, below = waiting.pop()
        stamp = os.stat(inside)
        if (stamp.st_dev, stamp.st_ino) in visited:  # a link back up
            continue
        visited.add((stamp.st_dev, stamp.st_ino))
        listing.seen.setdefault(inside, (stamp.st_ino, stamp.st_size, stamp.st_mtime_ns, stamp.st_ctime_ns))
        with os.scandir(inside) as entries:
            for entry in entries:
                name, is_plain = entry.name, entry.is_file(follow_symlinks=False)  # true for nearly all
                ending, is_folder = _ending(name), not is_plain and _leads_to_folder(entry)
                id = printable(below + name, LONGEST_ID)
                if is_folder and label < 0:
                    continue
                if not is_folder and ending not in endings:
                    if is_plain and name[0] != "." and ending not in BESIDE and (ending or name.lower() not in NAMES):
                        listing.others[ending] += 1
                elif reason := "" if is_plain else _problem(entry, is_folder):
                    listing.skipped.append((id, reason))
                elif is_folder:
                    waiting.append((entry.path, f"{below}{name}/"))
                else:
                    size = entry.stat()
                    files.append(ImageFile(id, entry.path, label, f"{size.st_size}\0{size.st_mtime_ns}"))
    # in the order of `Path.parts`, in which a/x precedes a-b/x
    return sorted(files, key=lambda file: file.filename.replace(os.sep, "\0"))


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder or a link to one; False for a circular link."""
    return os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir()


def _problem(entry: os.DirEntry[str], is_folder: bool) -> str:
    """Return the reason to skip a link or a special file; "" if it is not skipped."""
    if not entry.is_symlink():
        return "" if is_folder else N_("not a file")
    if not follow_links():
        return LINK
    if is_folder or os.path.isfile(entry.path):
        return ""
    return N_("not a file") if os.path.exists(entry.path) else N_("a link to nothing")


def _ending(name: str) -> str:
    """Return the suffix as `Path.suffix` does, in lower case."""
    dot = name.rfind(".")
    return name[dot:].lower() if dot > 0 else ""


def part(files: list[ImageFile], split: str) -> list[ImageFile]:
    """Return the files of a split: a fifth of each class, by a fixed seed, is for the test."""
    rng, test = np.random.default_rng(SEED), np.zeros(len(files), bool)
    labels = np.array([f.label for f in files], np.int64)
    order = np.argsort(labels, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if files else ():
        test[rng.permutation(rows)[: round(TEST * len(rows))]] = True
    return [files[row] for row in np.flatnonzero(test == (split == "test")).tolist()]


# --- lists of images ---


FILE, LABEL, SPLIT = "file", "label", "split"
MISSING = N_("there is no such file")
OUTSIDE = N_("it is outside the list's folder")
OURS = ("id", "ids", "label", "labels", "h", "z", FILE, SPLIT, "")  # names that rows have already


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


def listings_of_list(where: str) -> dict[str, Listing]:
    """List the images of each split. Raises BadSetting for a file that is not an image list."""
    path, column = list_and_column(where)
    home = _Home(path)
    names, lines = _read_list(path)
    if column and column not in names:
        values = {"path": printable(path), "column": f"{printable(column)!r}", "names": printable(", ".join(names))}
        raise BadSetting("{path} has no column {column}; it has: {names}", **values)
    label, splits = column or LABEL, [(line.get(SPLIT) or "train").strip().lower() for line in lines]
    test = next((name for name in ("test", *FOR_TEST) if name in splits), "test")
    said = message("The test images come from the split {test}, because no split is named test.", test=test)
    more = tuple(n for n in names if n not in (*OURS, label))
    files: list[tuple[str, str, ImageFile]] = []  # split, class and file of each valid line
    skipped: dict[str, list[tuple[str, str]]] = {split: [] for split in SPLITS}
    before: dict[str, tuple[int, str]] = {}
    for number, (split, line) in enumerate(zip(splits, lines, strict=True), 2):
        split = "test" if split == test else split
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
            skipped.get(split, skipped["train"]).append((shown, reason))
        else:
            columns = tuple(line.get(n) or "" for n in more)
            files.append((split, text.strip(), ImageFile(shown, filename, -1, stamp, columns)))
    named = {name for _, name, _ in files if name}
    classes = sorted(named, key=int if all(n.removeprefix("-").isdecimal() for n in named) else None)
    number_of = {name: i for i, name in enumerate(classes)} | {"": -1}
    labeled_files = [(split, file._replace(label=number_of[name])) for split, name, file in files]
    listed = {}
    for split in SPLITS:
        in_split = [file for of, file in labeled_files if of == split]
        listed[split] = Listing(
            classes=tuple(map(printable, classes)),
            files=in_split if SPLIT in names else part([file for _, file in labeled_files], split),
            skipped=skipped[split],
            column_names=tuple(map(printable, more)),
            layout=(said,) if test != "test" else (),
            seen=home.seen,
        )
    return listed


class _Home:
    """The folder of an image list. Links are checked once per subfolder, not once per file."""

    def __init__(self, path: Path) -> None:
        self.seen = {os.fspath(path): file_stamp(path)}  # the stamps of the list and of the read folders
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
            if (folder := os.path.dirname(filename)) not in self.seen:
                self.seen[folder] = file_stamp(Path(folder))
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
