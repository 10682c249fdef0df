"""Files written whole or not at all: a kill at any moment leaves the old or the new. Torch-free.

A write goes to a temporary file, is flushed to the disk, renamed over the old one, and the folder
is flushed too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["sha256_file", "sync_folder", "tidy", "write_bytes", "writing"]


def write_bytes(path: str | Path, data: bytes | memoryview) -> None:
    """Write a file whole or not at all. Raises OSError (and leaves the old file) on a full disk."""
    with writing(path) as file:
        file.write(data)


@contextmanager
def writing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write in parts, that takes the place of the old one when all of it is written."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    sync_folder(path.parent)


def tidy(folder: str | Path, start: str = ".") -> None:
    """Remove what killed writers left half-written. Nobody else may be writing there."""
    for path in Path(folder).glob(f"{start}*.part"):
        with contextlib.suppress(OSError):
            path.unlink()


def sync_folder(path: str | Path) -> None:
    """Flush a folder's entries to the disk, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256_file(path: str | Path) -> str:
    """SHA-256 of a file's bytes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
