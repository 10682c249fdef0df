"""What a folder of images holds, before it is decoded: its classes, and some of its images.
Torch-free."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from contrastive_core.data import image_folder
from contrastive_core.data.image_folder import ImageFile, Listing

__all__ = ["FolderPreview", "changed", "folder_preview", "values_of"]

SHOWN = 60  # images
SIDE = 96  # pixels of a side of each


@dataclass(frozen=True, eq=False)
class FolderPreview:
    """`images` (k, 3, side, side) uint8 of at most SHOWN files, with the id and the class (−1:
    none) of each; `counts` are files of the train and the test split by class, without those of the
    shown that cannot be read."""

    images: np.ndarray
    ids: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]
    counts: tuple[tuple[int, int], ...]  # (train, test) of each class; of all where there is none
    left_out: tuple[tuple[str, str], ...]  # ids and reasons: links, and what cannot be read


def folder_preview(path: str, limit: int = SHOWN) -> FolderPreview:
    """Look at a folder as `folder:PATH` would. Raises ValueError for what is no such folder."""
    train, test = (image_folder.listing(path, split) for split in ("train", "test"))
    if not train.files:
        raise ValueError(image_folder.why_empty(path, train, "train"))
    images, files, unreadable = [], [], []
    for file in _some(train, limit):
        try:
            images.append(image_folder.pixels(file.path, SIDE, gray=False))
        except Exception as error:  # whatever Pillow raises at a damaged file
            unreadable.append((file.id, image_folder.reason_of(error)))
        else:
            files.append(file)
    bad = {name for name, _ in unreadable}
    counted = [Counter(f.label for f in p.files if f.id not in bad) for p in (train, test)]
    numbers = range(len(train.classes)) if train.classes else (-1,)
    return FolderPreview(
        np.stack(images) if images else np.zeros((0, 3, SIDE, SIDE), np.uint8),
        tuple(f.id for f in files),
        tuple(f.label for f in files),
        train.classes,
        tuple((counted[0][label], counted[1][label]) for label in numbers),
        (*train.skipped, *unreadable),
    )


def values_of(folder: str) -> dict[str, Any]:
    """The values of the analysis `folder`: a folder that has changed is another one."""
    return {"path": folder, "changed": changed(folder)}


def changed(folder: str) -> list[int]:
    """Changes with the files of a folder, and of those in it."""
    times: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        root = os.path.expanduser(folder)
        times.append(os.stat(root).st_mtime_ns)
        with os.scandir(root) as entries:
            times += sorted(e.stat().st_mtime_ns for e in entries if e.is_dir())[:1000]
    return times


def _some(listing: Listing, most: int) -> list[ImageFile]:
    """Files of every class in turn, then in the order of the classes."""
    by_class: dict[int, list[ImageFile]] = {}
    for file in listing.files:
        by_class.setdefault(file.label, []).append(file)
    in_turn = chain.from_iterable(zip_longest(*by_class.values()))
    chosen = [file for file in in_turn if file is not None][:most]
    return sorted(chosen, key=lambda f: f.label)
