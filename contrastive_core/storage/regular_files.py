"""Files that may come from anybody: only ordinary ones are opened, only so many bytes are read, and their names are
escaped before they stand in a message. A pipe would be waited for without end, a device never stops giving, and
opening one may move a tape: `open_regular` opens without waiting and looks at what it has before a byte is read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from contrastive_core.errors import NotRegular
from contrastive_core.messages import message

NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def open_regular(path: str | Path, limit: int | None = None) -> BinaryIO:
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
    """All bytes of an ordinary file of at most `limit` bytes. Raises NotRegular, also for a larger
    one, and what `open_regular` raises."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > limit else file.read(size + 1)
        while size < len(data) <= limit and (more := file.read(1 << 20)):  # it grew, or told no size
            data += more
    _check_size(max(size, len(data)), path, limit)
    return data


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
    whole = plain.isprintable()  # as nearly all are
    escaped = plain if whole else "".join(c if c.isprintable() else _escape(c) for c in plain)
    return escaped if len(escaped) <= limit else f"{escaped[: limit - 1]}…"


def thousands(**numbers: int) -> dict[str, str]:
    """Numbers for a message, with a comma behind each thousand."""
    return {name: f"{number:,}" for name, number in numbers.items()}


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _check(about: os.stat_result, path: str | Path, limit: int | None) -> None:
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(message("{path} is a folder, not a file", path=printable(path)))
    if not stat.S_ISREG(about.st_mode):
        raise NotRegular("{path} is a pipe, a device or a socket, not a file", path=printable(path))
    if limit is not None:
        _check_size(about.st_size, Path(path).name, limit)


def _check_size(size: int, name: str | Path, limit: int) -> None:
    if size > limit:
        values = thousands(size=size, limit=limit)
        raise NotRegular("{name} has {size} bytes; at most {limit} are read", name=printable(name), **values)
