"""Files: the folders of users' runs, shipped runs and caches, and safe reading and writing, also of tables that other
programs open. Torch-free.

In a checkout the folders are inside it. In an installation from a wheel, files that a checkout holds next to the
packages (app.py, pages, sweeps, shipped runs) are in `BUNDLE`, and users' files are in the system's folder for
application data.

A file may come from anyone: only regular files are opened, and a limited number of bytes is read. A read from a pipe
could wait forever, a device may never end, and opening one may have effects: `open_regular` checks before it opens
without blocking, and checks again before the first read.
Parsed files stay in memory until they change, because a page reads thousands of them every second.

A file is written completely or not at all: a kill at any moment leaves the old file or the new one. The data go to a
temporary file, are flushed to the disk and replace the old file; then the folder is flushed. Only their owner can
read files and folders (0600, 0700), whatever the umask; `shared` is for files that a user asked for."""

import contextlib
import csv
import hashlib
import math
import os
import stat
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, BinaryIO, Generic, TypeVar

from contrastive_core.base.errors import BadSetting, NotRegular
from contrastive_core.base.messages import message, printable, thousands

NAME = "contrastive-lab"
ROOT = Path(__file__).resolve().parents[2]  # the folder of the packages
NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
T = TypeVar("T")
FileStamp = tuple[int, int, int, int]
UNCHECKED, EXPANSION = 256 << 20, 100  # bytes that are always accepted; above them, maximum expansion
FRESH = 2.0  # seconds: a file that was just written may change again within a tick of its clock
MAX_FILE = 64 << 30  # bytes of a file that is hashed
BLANK = "".join(map(chr, range(33))) + "\x7f\x85\xa0\u200b\u2060\u3000\ufeff"
MAX_TABLE = 512 << 20  # bytes of a table that is read as text: a few million lines
BATCH = 20_000  # rows converted at a time


# --- folders ---


def is_checkout() -> bool:
    """Return whether this is a checkout of the project and not an installation."""
    return (ROOT / "app.py").is_file() and (ROOT / "pyproject.toml").is_file()


BUNDLE = ROOT if is_checkout() else ROOT / "contrastive_lab" / "bundle"
SHIPPED = BUNDLE / "checkpoints" / "shipped"
IMAGES = BUNDLE / "checkpoints" / "images"  # decoded test images of the shipped runs' data sets


def runs_home() -> Path:
    """Return the folder of users' runs: $CONTRASTIVE_LAB_RUNS, else a folder in the checkout or the user's data."""
    return _home("RUNS", "checkpoints/runs", "runs")


def data_home() -> Path:
    """Return the folder of caches: $CONTRASTIVE_LAB_HOME, a checkout's `.cache`, or `cache` in the user data."""
    return _home("HOME", ".cache", "cache")


def _home(variable: str, in_checkout: str, name: str) -> Path:
    if folder := os.environ.get(f"CONTRASTIVE_LAB_{variable}"):
        return Path(folder)
    if is_checkout():
        return ROOT / in_checkout
    import platformdirs

    return platformdirs.user_data_path(NAME, appauthor=False) / name


def follow_links() -> bool:
    """Return whether links inside image folders are followed ($CONTRASTIVE_LAB_FOLLOW_LINKS is 1)."""
    return os.environ.get("CONTRASTIVE_LAB_FOLLOW_LINKS") == "1"


# --- reading ---


def open_regular(path: str | Path, limit: int | None = None) -> BufferedReader:
    """Open a regular file of at most `limit` bytes for reading. Symbolic links in `path` are followed.
    Raises: NotRegular for a pipe, a device or a socket, and for a larger file; IsADirectoryError; FileNotFoundError,
    also for a broken link; OSError."""
    _check(os.stat(path), path, limit)  # before opening, which may already start a device
    handle = os.open(path, os.O_RDONLY | NO_WAIT)
    try:
        _check(os.fstat(handle), path, limit)  # the path may point to another file by now
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_regular(path: str | Path, limit: int) -> bytes:
    """Read all bytes of a regular file. Raises NotRegular, also above `limit` bytes, and as `open_regular` does."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > limit else file.read(size + 1)
        while size < len(data) <= limit and (more := file.read(1 << 20)):  # it grew, or reported no size
            data += more
    _check_size(max(size, len(data)), path, limit)
    return data


def expands(size: int, stored: int) -> bool:
    """Return whether unpacking would enlarge data so much that it is probably an attack on the memory."""
    return size > max(UNCHECKED, EXPANSION * stored)


def is_regular(path: str | Path) -> bool:
    """Return whether the path is a regular file, after following links; False if it cannot be accessed."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):  # a zero byte in the name is a ValueError
        return False


def _check(about: os.stat_result, path: str | Path, limit: int | None) -> None:
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(message("{path} is a folder, not a file", path=printable(path)))
    if not stat.S_ISREG(about.st_mode):
        raise NotRegular("{path} is a pipe, a device or a socket, not a file", path=printable(path))
    if limit is not None:
        _check_size(about.st_size, Path(path).name, limit)
    real = min(about.st_size, 512 * getattr(about, "st_blocks", 0))  # on the disk; 0 if unknown
    if real and expands(about.st_size, real):
        values = {"name": printable(Path(path).name), **thousands(real=real, size=about.st_size)}
        raise NotRegular("{name} stores only {real} of its {size} bytes; sparse files are not read", **values)


def _check_size(size: int, name: str | Path, limit: int) -> None:
    if size > limit:
        values = thousands(size=size, limit=limit)
        raise NotRegular("{name} has {size} bytes; at most {limit} are read", name=printable(name), **values)


class FileCache(Generic[T]):
    """Cache of `read(path)` that reads again only when the file was replaced or written to.

    Args: read: its result is shared between callers, who must not change it; errors are not cached.
        most: cached results; the least recently used is dropped first."""

    def __init__(self, read: Callable[[Path], T], most: int) -> None:
        self._read = read
        self._cached = lru_cache(most)(lambda path, stamp: read(path))

    def __call__(self, path: Path) -> T:
        stamp = file_stamp(path)
        is_fresh = stamp is None or time.time() - stamp[2] / 1e9 <= FRESH
        return self._read(path) if is_fresh else self._cached(path, stamp)


def file_stamp(path: Path) -> FileStamp | None:
    """Return the inode, the size and the times of the last write and change (ns); None without access."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


# --- writing ---


def write_bytes(path: str | Path, data: bytes | memoryview, shared: bool = False, parents: bool = True) -> None:
    """Write a file atomically. Raises OSError, and keeps the old file, on a full disk.
    Args: shared: other users may read it; parents: create missing parent folders."""
    with writing(path, shared, parents) as file:
        file.write(data)


@contextmanager
def writing(path: str | Path, shared: bool = False, parents: bool = True) -> Iterator[BinaryIO]:
    """Context with a file to write in parts, which replaces the old file once it is complete."""
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
    """Open a new empty file for writing, in place of an existing one. Only the owner can access it. Raises OSError."""
    path.unlink(missing_ok=True)  # also a link, but never its target
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def check_links(path: Path) -> None:
    """Raise NotRegular for a symbolic link between the folder of runs and `path`: runs may come from anyone, and a link
    may lead anywhere. The folder of runs itself is the user's choice."""
    home = runs_home()
    if home not in path.parents:
        return
    while path != home:
        if path.is_symlink():
            raise NotRegular("{path} is a link; nothing is written through it", path=printable(path))
        path = path.parent


def make_folder(path: str | Path, shared: bool = False) -> Path:
    """Create a folder and its missing parents, accessible only to the owner. Raises NotRegular; OSError.
    Args: shared: for a file that a user asked for; its path may contain symbolic links."""
    path = Path(path)
    if not shared:
        check_links(path)
    for folder in reversed([path, *path.parents]):
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)
    return path


def tidy(folder: str | Path) -> None:
    """Remove the temporary files of killed writers. No other process may write into the folder."""
    for path in Path(folder).glob(".*.part"):
        with contextlib.suppress(OSError):
            path.unlink()


def numbered_files(folder: Path, prefix: str, suffix: str) -> list[tuple[int, Path]]:
    """Return the files named by a number between a prefix and a suffix, as (number, path), sorted."""
    named = ((path.name.removeprefix(prefix).removesuffix(suffix), path) for path in folder.glob(f"{prefix}*{suffix}"))
    return sorted((int(number), path) for number, path in named if number.isascii() and number.isdigit())


def sync_file(file: IO[bytes]) -> None:
    """Flush a file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(path: str | Path) -> None:
    """Flush the entries of a folder to the disk, on POSIX systems."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256_file(path: str | Path) -> str:
    """Return the SHA-256 of a regular file in hex digits. Raises NotRegular; OSError."""
    with open_regular(path, MAX_FILE) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- tables: no spreadsheet runs the cells and headers that are written ---


def read_text(path: str | Path) -> str:
    """Read the text of a UTF-8 file. Raises BadSetting."""
    try:
        return read_regular(path, MAX_TABLE).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise BadSetting("cannot read {path}: {error}", path=printable(path), error=printable(error)) from None


def read_table(path: str | Path, *needed: str) -> tuple[list[str], list[dict[str, str]]]:
    """Read a table separated by commas, semicolons or tabs: the names of the columns, and each line by column.
    Raises: BadSetting for other files, a missing column of `needed`, or a duplicate column."""
    text, shown = read_text(path), printable(path)
    between = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.DictReader(text.splitlines(), delimiter=between)
    try:
        names = reader.fieldnames = [n.strip() for n in reader.fieldnames or ()]
        lines = list(reader)
    except csv.Error as error:
        raise BadSetting("cannot read {path}: {error}", path=shown, error=printable(error)) from None
    for column in needed:
        if column not in names:
            raise BadSetting("{path} needs a column {column} in its first line", path=shown, column=f"{column!r}")
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise BadSetting("{shown} has two columns {twice}", shown=shown, twice=f"{printable(twice)!r}")
    return names, lines


def write_table(out: Path, columns: Mapping[str, Iterable[object]]) -> None:
    """Write columns as `.parquet` or `.csv` atomically. Raises OSError."""
    import pandas

    is_csv = out.suffix == ".csv"
    frame = pandas.DataFrame({safe_cell(k) if is_csv else k: v for k, v in columns.items()})
    with writing(out, shared=True) as file:
        if is_csv:
            for name in frame:
                if frame[name].dtype.kind not in "biuf":  # numbers cannot be formulas
                    frame[name] = [safe_cell(v) for v in frame[name]]
            file.write(frame.to_csv(index=False).encode())
        else:
            frame.to_parquet(file, index=False)


def safe_cell(value: Any) -> Any:
    """Quote text that a spreadsheet would run as a formula."""
    text = str(value)
    # a spreadsheet skips leading blanks and normalizes full-width signs
    start = unicodedata.normalize("NFKC", text.lstrip(BLANK)[:1])
    is_formula = start.startswith(("=", "+", "-", "@")) or text.startswith(("\t", "\r", "\n"))
    return f"'{text}" if is_formula and not _number(text) else text


def _number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
