"""Files written whole or not at all: a kill at any moment leaves the old or the new. A write goes to a temporary
file, is flushed to the disk, renamed over the old one, and the folder is flushed too. Files and folders are their
owner's alone (0600, 0700), whatever the umask; `shared` is for files that a person asked for."""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from contrastive_core.base.errors import NotRegular
from contrastive_core.base.paths import runs_home
from contrastive_core.base.regular_files import open_regular, printable

MAX_FILE = 64 << 30  # bytes of a file that is hashed


def write_bytes(path: str | Path, data: bytes | memoryview, shared: bool = False, parents: bool = True) -> None:
    """Write a file whole or not at all. Raises OSError (and leaves the old file) on a full disk.
    Args: shared: others may read it; parents: make missing folders above it."""
    with writing(path, shared, parents) as file:
        file.write(data)


@contextmanager
def writing(path: str | Path, shared: bool = False, parents: bool = True) -> Iterator[BinaryIO]:
    """A file to write in parts, that takes the place of the old one when all of it is written."""
    path = Path(path)
    if not shared:
        check_links(path.parent)
    if parents:
        make_folder(path.parent, shared)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            sync_file(file)
        if shared:
            os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError) and error.errno and not error.filename:
            error.filename = str(path)  # a full disk does not say which file
        raise
    sync_folder(path.parent)


def new_file(path: Path) -> BinaryIO:
    """A new empty file of its owner's alone, opened for writing, in place of the old one. Raises OSError."""
    path.unlink(missing_ok=True)  # a link too, never what it leads to
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def check_links(path: Path) -> None:
    """Raises NotRegular where a link stands between the folder of runs and a folder in it: it may lead anywhere, and a
    folder of runs may come from anybody. The folder of runs itself is the user's choice."""
    home = runs_home()
    if home not in path.parents:
        return
    while path != home:
        if path.is_symlink():
            raise NotRegular("{path} is a link; nothing is written through it", path=printable(path))
        path = path.parent


def make_folder(path: str | Path, shared: bool = False) -> Path:
    """A folder and those above it that are missing, which only their owner can enter. Raises NotRegular; OSError.
    Args: shared: for a file that a person asked for, which may lie behind a link."""
    path = Path(path)
    if not shared:
        check_links(path)
    for folder in reversed([path, *path.parents]):
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)
    return path


def tidy(folder: str | Path) -> None:
    """Remove what killed writers left half-written. Nobody else may be writing there."""
    for path in Path(folder).glob(".*.part"):
        with contextlib.suppress(OSError):
            path.unlink()


def numbered_files(folder: Path, prefix: str, suffix: str) -> list[tuple[int, Path]]:
    """Files named by a number between a prefix and a suffix, with it, rising."""
    named = ((path.name.removeprefix(prefix).removesuffix(suffix), path) for path in folder.glob(f"{prefix}*{suffix}"))
    return sorted((int(number), path) for number, path in named if number.isascii() and number.isdigit())


def sync_file(file: IO[bytes]) -> None:
    """Flush what was written to the disk."""
    file.flush()
    os.fsync(file.fileno())


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
    """SHA-256 of an ordinary file's bytes. Raises NotRegular; OSError."""
    with open_regular(path, MAX_FILE) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
