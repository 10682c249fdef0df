"""`folder:PATH`: a folder of images as a data set, decoded once.

A folder per class; or images only, without labels; or `train/` and `test/` with either. Without a
test part a fifth of each class is set aside, by a fixed seed. Images are brought to one square
size: their shorter side, at most 96 pixels, cropped in the middle. What cannot be read is left out
and listed with the reason.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["plan"]

ENDINGS = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
LARGEST = 96  # pixels of a side that are kept
MOST_PIXELS = 64_000_000  # of one file: above it Pillow's warning of a bomb is an error
SEED, TEST = 0, 0.2
Files = list[tuple[str, Path, int]]  # id, path, label


def plan(path: str, split: str, scratch: Path) -> tuple[str, Callable[[], dict[str, Any]]]:
    """The cache key of a folder's split, and how to make it with room in the folder `scratch`.

    Raises: ValueError for a path that is no folder, or has no images.
    """
    root = Path(path).expanduser()
    if not root.is_dir():
        raise ValueError(f"there is no folder {path}")
    classes, files = _listing(root, split)
    if not files:
        raise ValueError(
            f"{root} has no images for {split}: it needs one folder per class, images, or train/ "
            "and test/ with either"
        )
    digest = hashlib.sha256(str(root.resolve()).encode())
    for name, file, label in files:
        about = file.stat()
        digest.update(f"{name}\0{about.st_size}\0{about.st_mtime_ns}\0{label}\n".encode())
    key = f"folder-{digest.hexdigest()[:24]}-{split}-v1"
    return key, lambda: _decode(classes, files, scratch)


def _listing(root: Path, split: str) -> tuple[tuple[str, ...], Files]:
    """Classes, and the files of a split with their labels (−1: none)."""
    parts = [root / "train", root / "test"]
    if all(p.is_dir() for p in parts):
        both = [_labeled(p) for p in parts]
        classes = tuple(sorted({c for found, _ in both for c in found}))
        own, files = both[split == "test"]
        renumbered = {i: classes.index(c) for i, c in enumerate(own)}
        return classes, [(n, f, renumbered.get(y, -1)) for n, f, y in files]
    classes, files = _labeled(root)
    return classes, _part(files, split)


def _labeled(folder: Path) -> tuple[tuple[str, ...], Files]:
    subs = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    classes = tuple(p.name for p in subs if _images(p))
    if not classes:
        return (), [(p.name, p, -1) for p in _images(folder)]
    found: Files = []
    for label, name in enumerate(classes):
        found += [(str(p.relative_to(folder)), p, label) for p in _images(folder / name)]
    return classes, found


def _images(folder: Path) -> list[Path]:
    """Images under a folder; links that lead out of it are left alone."""
    inside = folder.resolve()
    found = []
    for here, _, names in os.walk(folder):  # does not follow links to folders
        for name in names:
            path = Path(here, name)
            if path.suffix.lower() not in ENDINGS:
                continue
            if not path.is_symlink() or (path.is_file() and path.resolve().is_relative_to(inside)):
                found.append(path)
    return sorted(found)


def _part(files: Files, split: str) -> Files:
    """A fifth of each class is for the test, drawn by a fixed seed."""
    rng, test = np.random.default_rng(SEED), set()
    for label in sorted({y for _, _, y in files}):
        own = [i for i, (_, _, y) in enumerate(files) if y == label]
        test |= set(rng.permutation(own)[: round(TEST * len(own))].tolist())
    return [f for i, f in enumerate(files) if (i in test) == (split == "test")]


def _decode(classes: tuple[str, ...], files: Files, scratch: Path) -> dict[str, Any]:
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = MOST_PIXELS // 2  # Pillow raises at twice this
    side, gray, skipped, sizes = LARGEST, True, [], []
    for name, path, _ in files:
        try:
            with Image.open(path) as image:
                sizes.append(min(image.size))
                gray = gray and image.mode in ("L", "1", "I;16")
        except Exception as error:
            skipped.append((name, _reason(error)))
    if sizes:
        side = min(LARGEST, int(np.median(sizes)))
    bad = {name for name, _ in skipped}
    images = _room((len(files), 1 if gray else 3, side, side), scratch)
    labels: list[int] = []
    ids: list[str] = []
    for name, path, label in files:
        if name in bad:
            continue
        try:
            images[len(ids)] = _read(path, side, gray)
        except Exception as error:
            skipped.append((name, _reason(error)))
            continue
        labels.append(label)
        ids.append(name)
    if not ids:
        raise ValueError(f"none of the {len(files)} images can be read; the first: {skipped[0]}")
    found = {"images": images[: len(ids)], "labels": labels, "classes": classes}
    return {**found, "ids": ids, "skipped": skipped}


def _room(shape: tuple[int, ...], scratch: Path) -> np.ndarray:
    """Room on the disk, since images may not fit into memory; gone with the array."""
    with tempfile.TemporaryFile(dir=scratch) as file:
        return np.memmap(file, np.uint8, "w+", shape=shape)


def _read(path: Path, side: int, gray: bool) -> np.ndarray:
    """One image (c, side, side) uint8, turned as its EXIF says, cropped in the middle."""
    from PIL import Image, ImageOps

    with Image.open(path) as image:
        upright = ImageOps.exif_transpose(image).convert("L" if gray else "RGB")
        fitted = ImageOps.fit(upright, (side, side), Image.Resampling.BILINEAR)
    array = np.asarray(fitted, np.uint8)
    return array[None] if gray else array.transpose(2, 0, 1)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]
