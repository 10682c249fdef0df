"""`folder:PATH`: a folder of images as a data set, decoded once.

A folder per class; or images only, without labels; or `train/` and `test/` with either. Without a
test part a fifth of each class is set aside, by a fixed seed. Images are brought to one square
size: their shorter side, at most 96 pixels, cropped in the middle. What cannot be read is left out
and listed with the reason.

Links inside the folder, to files or to folders, are followed only where the environment variable
CONTRASTIVE_LAB_FOLLOW_LINKS is 1; otherwise each is left out and listed. What is neither file nor
folder (a pipe, a device, a socket) is never opened.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.data.pictures import ENDINGS, opened_picture
from contrastive_core.paths import follow_links
from contrastive_core.storage.regular import printable

__all__ = ["ImageFile", "Listing", "listing", "pixels", "plan", "reason_of", "why_empty"]

LARGEST = 96  # pixels of a side that are kept
SEED, TEST = 0, 0.2
LINK = "a link, which is followed only where CONTRASTIVE_LAB_FOLLOW_LINKS is 1"
GRAY_MODES = ("L", "1", "I;16")


@dataclass(frozen=True)
class ImageFile:
    """One file of a split: its id, where it lies, its class (−1: none), its size and time."""

    id: str
    path: Path
    label: int
    stamp: str


@dataclass
class Listing:
    """Images below a folder, by class, and what was left out with the reason."""

    classes: tuple[str, ...] = ()
    files: list[ImageFile] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def plan(path: str, split: str, scratch: Path) -> tuple[str, Callable[[], dict[str, Any]]]:
    """The cache key of a folder's split, and how to make it with room in the folder `scratch`.

    Raises: ValueError for a path that is no folder, or has no images.
    """
    files = listing(path, split)
    if not files.files:
        raise ValueError(why_empty(path, files, split))
    digest = hashlib.sha256(os.fsencode(Path(path).expanduser().resolve()))
    for file in files.files:
        digest.update(f"{file.id}\0{file.stamp}\0{file.label}\n".encode())
    digest.update(repr(files.skipped).encode())
    return f"folder-{digest.hexdigest()[:24]}-{split}-v2", lambda: _decode(files, scratch)


def listing(path: str, split: str) -> Listing:
    """What a folder holds of a split. Raises ValueError for a path that is no folder."""
    root = Path(path).expanduser()
    if not root.is_dir():
        raise ValueError(f"there is no folder {printable(path)}")
    return _listing(root, split)


def why_empty(path: str, listing: Listing, split: str) -> str:
    """The sentence for a folder without images of a split."""
    links = sum(reason == LINK for _, reason in listing.skipped)
    return (
        f"{printable(Path(path).expanduser())} has no images for {split}: it needs one folder per "
        "class, images, or train/ and test/ with either"
        + (f"; {links:,} links were left out ({LINK})" if links else "")
    )


# --- listing: one look at every entry ------------------------------------------------------------


def _listing(root: Path, split: str) -> Listing:
    """Classes, the files of a split with their labels, and what is left out of it."""
    parts = {name: root / name for name in ("train", "test")}
    if all(_is_folder(p) for p in parts.values()):
        listings = {name: _labeled(folder) for name, folder in parts.items()}
        classes = tuple(sorted({c for part in listings.values() for c in part.classes}))
        chosen, number = listings[split], {c: i for i, c in enumerate(classes)}
        files = [
            ImageFile(
                f.id, f.path, number[chosen.classes[f.label]] if f.label >= 0 else -1, f.stamp
            )
            for f in chosen.files
        ]
        return Listing(classes, files, chosen.skipped)
    whole = _labeled(root)
    return Listing(whole.classes, _part(whole.files, split), whole.skipped)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and (follow_links() or not path.is_symlink())


def _labeled(folder: Path) -> Listing:
    """A class for each folder that holds images; without such folders, images without labels."""
    listing = Listing()
    folders = sorted(p for p in folder.iterdir() if p.is_dir())
    classes: list[str] = []
    for sub in folders:
        if sub.name.startswith("."):
            continue
        if not _is_folder(sub):
            listing.skipped.append((_id(sub, folder), LINK))
        elif images := _images(sub, folder, len(classes), listing.skipped):
            listing.files += images
            classes.append(printable(sub.name))
    if not classes:
        listing.files = _images(folder, folder, -1, listing.skipped, deep=False)
    listing.classes = tuple(classes)
    return listing


def _images(
    folder: Path, root: Path, label: int, skipped: list[tuple[str, str]], deep: bool = True
) -> list[ImageFile]:
    """Images at any depth of a folder, in the order of their names."""
    files, waiting, visited = [], [folder], set()
    while waiting:
        inside = waiting.pop()
        about = inside.stat()
        if (about.st_dev, about.st_ino) in visited:  # a link back up
            continue
        visited.add((about.st_dev, about.st_ino))
        with os.scandir(inside) as entries:
            for entry in entries:
                path = Path(entry.path)
                if entry.is_dir() and not deep:
                    continue
                elif entry.is_dir() and (follow_links() or not entry.is_symlink()):
                    waiting.append(path)
                elif not entry.is_dir() and path.suffix.lower() not in ENDINGS:
                    continue
                elif entry.is_symlink() and not follow_links():
                    skipped.append((_id(path, root), LINK))
                elif not entry.is_file():
                    broken = entry.is_symlink() and not path.exists()
                    skipped.append((_id(path, root), "a link to nothing" if broken else "no file"))
                else:
                    size = entry.stat()
                    stamp = f"{size.st_size}\0{size.st_mtime_ns}"
                    files.append(ImageFile(_id(path, root), path, label, stamp))
    return sorted(files, key=lambda f: f.path.parts)


def _id(path: Path, root: Path) -> str:
    """A file's id: its path below the folder, as text that every file and message can hold."""
    return printable(path.relative_to(root).as_posix(), limit=4096)


def _part(files: list[ImageFile], split: str) -> list[ImageFile]:
    """A fifth of each class is for the test, drawn by a fixed seed."""
    rng, test = np.random.default_rng(SEED), np.zeros(len(files), bool)
    labels = np.array([f.label for f in files], np.int64)
    order = np.argsort(labels, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if files else ():
        test[rng.permutation(rows)[: round(TEST * len(rows))]] = True
    return [f for f, is_test in zip(files, test, strict=True) if is_test == (split == "test")]


# --- decoding ------------------------------------------------------------------------------------


def _decode(listing: Listing, scratch: Path) -> dict[str, Any]:
    """Arrays of the images that can be read; the others are listed with the reason."""
    side, gray, unreadable = _common_form(listing.files)
    files = [f for f in listing.files if f.id not in unreadable]
    skipped = [*listing.skipped, *unreadable.items()]
    images = _scratch_array((len(listing.files), 1 if gray else 3, side, side), scratch)
    labels: list[int] = []
    ids: list[str] = []
    for file in files:
        try:
            images[len(ids)] = pixels(file.path, side, gray)
        except Exception as error:
            skipped.append((file.id, reason_of(error)))
            continue
        labels.append(file.label)
        ids.append(file.id)
    if not ids:
        name, reason = skipped[-1]
        raise ValueError(
            f"none of the {len(listing.files)} images can be read; the last: {name}: {reason}"
        )
    arrays = {"images": images[: len(ids)], "labels": labels, "classes": listing.classes}
    return {**arrays, "ids": ids, "skipped": skipped}


def _common_form(files: list[ImageFile]) -> tuple[int, bool, dict[str, str]]:
    """Side in pixels and whether all are gray, from the files' heads; reasons of those without."""
    gray, sides, unreadable = True, [], {}
    for file in files:
        try:
            with opened_picture(file.path) as image:
                sides.append(min(image.size))
                gray = gray and image.mode in GRAY_MODES
        except Exception as error:
            unreadable[file.id] = reason_of(error)
    return min(LARGEST, int(np.median(sides))) if sides else LARGEST, gray, unreadable


def _scratch_array(shape: tuple[int, ...], scratch: Path) -> np.ndarray:
    """Room on the disk, since images may not fit into memory; gone with the array."""
    with tempfile.TemporaryFile(dir=scratch) as file:
        return np.memmap(file, np.uint8, "w+", shape=shape)


def pixels(path: Path, side: int, gray: bool) -> np.ndarray:
    """One image (c, side, side) uint8, turned as its EXIF says, cropped in the middle."""
    from PIL import Image, ImageOps

    with opened_picture(path) as image:
        upright = ImageOps.exif_transpose(image).convert("L" if gray else "RGB")
        fitted = ImageOps.fit(upright, (side, side), Image.Resampling.BILINEAR)
    array = np.asarray(fitted, np.uint8)
    return array[None] if gray else array.transpose(2, 0, 1)


def reason_of(error: Exception) -> str:
    """Why an image cannot be read, in words that can be shown."""
    return printable(f"{type(error).__name__}: {error}", 200)
