"""Subfolders with their numbers of pictures, for a file dialog.

No file is opened, and the number of entries that are read is limited.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from contrastive_core.data.image_decoding import ENDINGS

MOST = 200  # folders that are listed
LOOKS = 20_000  # entries that are looked at, in all
DEPTH = 3  # folders below the counted one: train/class/part


@dataclass(frozen=True)
class Subfolder:
    """A folder; `pictures` are at least so many, exactly where `is_exact`."""

    name: str
    path: Path
    pictures: int
    is_exact: bool


def subfolders(place: Path) -> list[Subfolder]:
    """Folders in a folder, by name, without hidden ones and links. Raises OSError."""
    with os.scandir(place) as entries:
        names = sorted((e.name for e in entries if not e.name.startswith(".") and _is_folder(e)), key=str.lower)
    looks = LOOKS // max(1, min(len(names), MOST))
    counted = [(name, place / name, *_count(place / name, looks)) for name in names[:MOST]]
    return [Subfolder(*parts) for parts in counted]


def pictures_in(place: Path) -> tuple[int, bool]:
    """How many pictures a folder holds at a few levels, and whether that is all of them."""
    return _count(place, LOOKS)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _count(folder: Path, looks: int) -> tuple[int, bool]:
    count, waiting = 0, [(folder, 0)]
    while waiting:
        inside, depth = waiting.pop(0)
        try:
            with os.scandir(inside) as entries:
                for entry in entries:
                    looks -= 1
                    if looks < 0:
                        return count, False
                    if _is_folder(entry):
                        if depth < DEPTH and not entry.name.startswith("."):
                            waiting.append((Path(entry.path), depth + 1))
                    else:
                        count += Path(entry.name).suffix.lower() in ENDINGS
        except OSError:
            continue  # not to be read: as if it were empty
    return count, True
