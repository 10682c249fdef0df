"""Folders of images as runs without the setting `image_size` have them, held to the last bit, so
that such runs go on: 16 bits are clipped, transparency is dropped, size and color are told split by
split. Torch-free.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.data.decoding import reason_of
from contrastive_core.data.image_folder import ImageFile, Listing
from contrastive_core.data.pictures import opened_picture
from contrastive_core.storage.room import room

__all__ = ["cache_key", "decode", "pixels"]

BEFORE = 96  # pixels of a side that are kept
GRAY_BEFORE = ("L", "1", "I;16")


def cache_key(where: str, listing: Listing, split: str) -> str:
    """Changes with the files of the split."""
    digest = hashlib.sha256(os.fsencode(where))
    for file in listing.files:
        digest.update(f"{file.id}\0{file.stamp}\0{file.label}\n".encode())
    digest.update(repr(listing.skipped).encode())
    return f"folder-{digest.hexdigest()[:24]}-{split}-v2"


def decode(listing: Listing, scratch: Path) -> dict[str, Any]:
    """Arrays of the images that can be read; the others are listed with the reason."""
    side, gray, unreadable = _common_form(listing.files)
    files = [f for f in listing.files if f.id not in unreadable]
    skipped = [*listing.skipped, *unreadable.items()]
    shape = (len(listing.files), 1 if gray else 3, side, side)
    images = room(shape, np.uint8, scratch)  # they may not fit into memory
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
                gray = gray and image.mode in GRAY_BEFORE
        except Exception as error:
            unreadable[file.id] = reason_of(error)
    return min(BEFORE, int(np.median(sides))) if sides else BEFORE, gray, unreadable


def pixels(path: Path, side: int, gray: bool) -> np.ndarray:
    """One image as runs without `image_size` have it: 16 bits clipped, what is transparent as the
    file has it."""
    from PIL import Image, ImageOps

    with opened_picture(path) as image:
        upright = ImageOps.exif_transpose(image).convert("L" if gray else "RGB")
        fitted = ImageOps.fit(upright, (side, side), Image.Resampling.BILINEAR)
    array = np.asarray(fitted, np.uint8)
    return array[None] if gray else array.transpose(2, 0, 1)
