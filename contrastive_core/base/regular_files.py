"""Files that may come from anybody: only ordinary ones are opened, only so many bytes are read, and their names are
escaped before they stand in a message. A pipe would be waited for without end, a device never stops giving, and
opening one may move a tape: `open_regular` opens without waiting and looks at what it has before a byte is read.
What was parsed stays in memory until its file changes: a page reads thousands of them every second."""

import os
import stat
import threading
import time
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from typing import Generic, TypeVar

from contrastive_core.base.errors import NotRegular
from contrastive_core.base.messages import message

NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
T = TypeVar("T")
FileStamp = tuple[int, int, int, int]
UNCHECKED, EXPANSION = 256 << 20, 100  # bytes, and how many may stand for one that is stored, above these
FRESH = 2.0  # seconds: a file that was just written may change again within a tick of its clock


def open_regular(path: str | Path, limit: int | None = None) -> BufferedReader:
    """An ordinary file of at most `limit` bytes, opened for reading; links that a person named are followed.
    Raises: NotRegular for a pipe, a device or a socket, and for a larger file; IsADirectoryError; FileNotFoundError,
    also for a link that leads nowhere; OSError."""
    _check(os.stat(path), path, limit)  # before it is opened: that alone may set a device going
    handle = os.open(path, os.O_RDONLY | NO_WAIT)
    try:
        _check(os.fstat(handle), path, limit)  # what was opened may be another file by now
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_regular(path: str | Path, limit: int) -> bytes:
    """All bytes of an ordinary file. Raises NotRegular, also above `limit` bytes, and what `open_regular` raises."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > limit else file.read(size + 1)
        while size < len(data) <= limit and (more := file.read(1 << 20)):  # it grew, or told no size
            data += more
    _check_size(max(size, len(data)), path, limit)
    return data


def stored_bytes(about: os.stat_result) -> int:
    """Bytes of a file on the disk; its size where the system does not say. A sparse file has fewer than its size."""
    return min(about.st_size, 512 * getattr(about, "st_blocks", 0)) or about.st_size


def expands(size: int, stored: int) -> bool:
    """Whether so few stored bytes become so many that they can only be an attack on the memory."""
    return size > max(UNCHECKED, EXPANSION * stored)


def is_regular(path: str | Path) -> bool:
    """Whether there is an ordinary file, links followed; False for whatever cannot be looked at."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):  # a zero byte in the name is a ValueError
        return False


def printable(text: object, limit: int = 300) -> str:
    """Text for a message: control characters, bytes that are no UTF-8 and marks that turn the
    writing round are escaped, and what is longer than `limit` is cut."""
    plain = str(text)[: limit + 1]
    escaped = plain if plain.isprintable() else escape(plain)  # nearly all are
    return escaped if len(escaped) <= limit else f"{escaped[: limit - 1]}…"


def thousands(**numbers: int) -> dict[str, str]:
    """Numbers for a message, with a comma behind each thousand."""
    return {name: f"{number:,}" for name, number in numbers.items()}


def escape(text: str) -> str:
    """Text whose control characters and halves of characters are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _check(about: os.stat_result, path: str | Path, limit: int | None) -> None:
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(message("{path} is a folder, not a file", path=printable(path)))
    if not stat.S_ISREG(about.st_mode):
        raise NotRegular("{path} is a pipe, a device or a socket, not a file", path=printable(path))
    if limit is not None:
        _check_size(about.st_size, Path(path).name, limit)
    if (real := stored_bytes(about)) and expands(about.st_size, real):
        values = {"name": printable(Path(path).name), **thousands(real=real, size=about.st_size)}
        raise NotRegular("{name} stores only {real} of its {size} bytes; sparse files are not read", **values)


def _check_size(size: int, name: str | Path, limit: int) -> None:
    if size > limit:
        values = thousands(size=size, limit=limit)
        raise NotRegular("{name} has {size} bytes; at most {limit} are read", name=printable(name), **values)


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
