"""Keep parsed files in memory until they change: a page reads thousands of them every second."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")
FileStamp = tuple[int, int, int, int]
FRESH = 2.0  # seconds: a file that was just written may change again within a tick of its clock


class FileCache(Generic[T]):
    """Call `read(path)` again only when the file was replaced or written to.

    Args: read: its result is shared between callers, who must not change it; errors are not cached.
        most: cached files; the oldest entry is dropped first.
    """

    def __init__(self, read: Callable[[Path], T], most: int) -> None:
        self._read, self._most = read, most
        self._cached: dict[Path, tuple[FileStamp, T]] = {}
        self._lock = threading.Lock()

    def __call__(self, path: Path) -> T:
        before = file_stamp(path)
        cached = self._cached.get(path)
        if cached is not None and cached[0] == before:
            return cached[1]
        value = self._read(path)
        if before is not None and time.time() - before[2] / 1e9 > FRESH:
            with self._lock:
                self._cached.pop(path, None)
                self._cached[path] = (before, value)
                while len(self._cached) > self._most:
                    del self._cached[next(iter(self._cached))]
        return value


def file_stamp(path: Path) -> FileStamp | None:
    """Return inode, size, and times of the last write and change; None where there is no access."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
