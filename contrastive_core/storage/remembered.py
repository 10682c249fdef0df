"""What was read of files, kept in memory until they change: a page asks for thousands, each second.
Torch-free."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

__all__ = ["Remembered", "Stamp", "stamp_of"]

T = TypeVar("T")
Stamp = tuple[int, int, int, int]
FRESH = 2.0  # seconds: a file that was just written may change again within a tick of its clock


class Remembered(Generic[T]):
    """`read(path)`, called again only when the file is another one or was written to.

    Args: read: what it gives is shared by all who ask, so that nobody may change it; what it
        raises is not kept. most: of how many files; the first that was read goes first.
    """

    def __init__(self, read: Callable[[Path], T], most: int) -> None:
        self._read, self._most = read, most
        self._kept: dict[Path, tuple[Stamp, T]] = {}
        self._lock = threading.Lock()

    def __call__(self, path: Path) -> T:
        before = stamp_of(path)
        kept = self._kept.get(path)
        if kept is not None and kept[0] == before:
            return kept[1]
        value = self._read(path)
        if before is not None and time.time() - before[2] / 1e9 > FRESH:
            with self._lock:
                self._kept.pop(path, None)
                self._kept[path] = (before, value)
                while len(self._kept) > self._most:
                    del self._kept[next(iter(self._kept))]
        return value


def stamp_of(path: Path) -> Stamp | None:
    """By which a file is known to be the same: inode, size, and when it was written and changed;
    None where it cannot be looked at."""
    try:
        about = os.stat(path)
    except (OSError, ValueError):
        return None
    return about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns
