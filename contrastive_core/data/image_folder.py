"""`folder:PATH`: a folder of images as a data set.

A folder per class; or images only, without labels; or `train/` and `test/` with either. Without a
test part a fifth of each class is set aside, by a fixed seed. image_cache.py decodes what is listed
here, to the form that a run's settings name (image_form.py).

Links inside the folder, to files or to folders, are followed only where the environment variable
CONTRASTIVE_LAB_FOLLOW_LINKS is 1; otherwise each is left out and listed. What is neither file nor
folder (a pipe, a device, a socket) is never opened.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contrastive_core.data.pictures import ENDINGS
from contrastive_core.paths import follow_links
from contrastive_core.storage.regular import printable

__all__ = ["ImageFile", "Listing", "listings", "part", "why_empty"]

ARRAYS = {".npy"}
SPLITS = ("train", "test")
SEED, TEST = 0, 0.2
LINK = "a link, which is followed only where CONTRASTIVE_LAB_FOLLOW_LINKS is 1"


class ImageFile(NamedTuple):
    """One file of a split: its id, where it lies, its class (−1: none), its size and time. A tuple,
    and its path as text, since there may be a million."""

    id: str
    filename: str
    label: int
    stamp: str
    columns: tuple[str, ...] = ()  # what a list of images says of it besides

    @property
    def path(self) -> Path:
        return Path(self.filename)

    @property
    def size(self) -> int:
        """Bytes."""
        return int(self.stamp.partition("\0")[0])


@dataclass
class Listing:
    """Images below a folder, by class, and what was left out with the reason."""

    classes: tuple[str, ...] = ()
    files: list[ImageFile] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    column_names: tuple[str, ...] = ()  # of the files' `columns`


def listings(path: str) -> dict[str, Listing]:
    """What a folder holds of each split. Arrays (`.npy`) count where it has no pictures: beside
    them they are something else. Raises ValueError for a path that is no folder."""
    root = Path(path).expanduser()
    if not root.is_dir():
        raise ValueError(f"there is no folder {printable(path)}")
    pictures = _listings(root, ENDINGS)
    if any(listing.files for listing in pictures.values()):
        return pictures
    arrays = _listings(root, ARRAYS)
    return arrays if any(listing.files for listing in arrays.values()) else pictures


def why_empty(path: str, listing: Listing, split: str) -> str:
    """The sentence for a folder without images of a split."""
    links = sum(reason == LINK for _, reason in listing.skipped)
    return (
        f"{printable(Path(path).expanduser())} has no images for {split}: it needs one folder per "
        "class, images, or train/ and test/ with either"
        + (f"; {links:,} links were left out ({LINK})" if links else "")
    )


# --- listing: one look at every entry ------------------------------------------------------------


def _listings(root: Path, endings: set[str]) -> dict[str, Listing]:
    """Classes, the files of each split with their labels, and what is left out of it."""
    folders = {name: root / name for name in SPLITS}
    if not all(_is_folder(p) for p in folders.values()):
        whole = _labeled(root, endings)
        parts = {split: part(whole.files, split) for split in SPLITS}
        return {s: Listing(whole.classes, files, whole.skipped) for s, files in parts.items()}
    each = {name: _labeled(folder, endings) for name, folder in folders.items()}
    classes = tuple(sorted({c for listing in each.values() for c in listing.classes}))
    number = {c: i for i, c in enumerate(classes)}
    for listing in each.values():
        if listing.classes not in ((), classes):  # this split lacks a class of the other
            labels = [number[c] for c in listing.classes]
            listing.files = [f._replace(label=labels[f.label]) for f in listing.files]
        listing.classes = classes
    return each


def _is_folder(path: Path) -> bool:
    return path.is_dir() and (follow_links() or not path.is_symlink())


def _labeled(folder: Path, endings: set[str]) -> Listing:
    """A class for each folder that holds images; without such folders, images without labels."""
    listing = Listing()
    with os.scandir(folder) as entries:
        folders = sorted(folder / e.name for e in entries if _leads_to_folder(e))
    classes: list[str] = []
    for sub in folders:
        if sub.name.startswith("."):
            continue
        if not _is_folder(sub):
            listing.skipped.append((_id(sub.name), LINK))
        elif images := _images(sub, f"{sub.name}/", len(classes), listing.skipped, endings):
            listing.files += images
            classes.append(printable(sub.name))
    if not classes:
        listing.files = _images(folder, "", -1, listing.skipped, endings, deep=False)
    listing.classes = tuple(classes)
    return listing


def _images(
    folder: Path, prefix: str, label: int, skipped: list[tuple[str, str]],
    endings: set[str], deep: bool = True,
) -> list[ImageFile]:  # fmt: skip
    """Images at any depth of a folder, in the order of their names; one look at each.

    Args: prefix: of the ids, with a slash at its end.
    """
    files, waiting, visited = [], [(os.fspath(folder), prefix)], set()
    while waiting:
        inside, below = waiting.pop()
        about = os.stat(inside)
        if (about.st_dev, about.st_ino) in visited:  # a link back up
            continue
        visited.add((about.st_dev, about.st_ino))
        with os.scandir(inside) as entries:
            for entry in entries:
                name, is_plain = entry.name, entry.is_file(follow_symlinks=False)  # nearly always
                is_folder = not is_plain and _leads_to_folder(entry)
                if not deep if is_folder else _ending(name) not in endings:
                    continue
                reason = "" if is_plain else _problem(entry, is_folder)
                if reason:
                    skipped.append((_id(below + name), reason))
                elif is_folder:
                    waiting.append((entry.path, f"{below}{name}/"))
                else:
                    size = entry.stat()
                    stamp = f"{size.st_size}\0{size.st_mtime_ns}"
                    files.append(ImageFile(_id(below + name), entry.path, label, stamp))
    return sorted(files, key=_by_parts)


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder or a link to one; not so a link in a circle."""
    return os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir()


def _problem(entry: os.DirEntry[str], is_folder: bool) -> str:
    """Why an entry is left out; "" where it is not."""
    if not entry.is_symlink():
        return "" if is_folder or entry.is_file() else "no file"
    if not follow_links():
        return LINK
    if is_folder or os.path.isfile(entry.path):
        return ""
    return "no file" if os.path.exists(entry.path) else "a link to nothing"


def _ending(name: str) -> str:
    """As `Path.suffix`, in lower case."""
    dot = name.rfind(".")
    return name[dot:].lower() if dot > 0 else ""


def _by_parts(file: ImageFile) -> str:
    """Orders as `Path.parts` do: a folder's files before those of one whose name goes on."""
    return file.filename.replace(os.sep, "\0")


def _id(below: str) -> str:
    """A file's id: its path below the folder, as text that every file and message can hold."""
    return printable(below, limit=4096)


def part(files: list[ImageFile], split: str) -> list[ImageFile]:
    """A fifth of each class is for the test, drawn by a fixed seed."""
    rng, test = np.random.default_rng(SEED), np.zeros(len(files), bool)
    labels = np.array([f.label for f in files], np.int64)
    order = np.argsort(labels, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if files else ():
        test[rng.permutation(rows)[: round(TEST * len(rows))]] = True
    return [files[row] for row in np.flatnonzero(test == (split == "test")).tolist()]
