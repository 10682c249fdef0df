"""Files that a kill at any moment leaves old or new, never between. Torch-free.

A write goes to a temporary file, is flushed to the disk, renamed over the old one, and the folder
is flushed too. Locks are files that name their process and know when it has died.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import socket
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

__all__ = [
    "Damaged",
    "Locked",
    "append_lines",
    "is_process",
    "lock",
    "read_json",
    "read_lines",
    "read_npz",
    "sha256_file",
    "tidy",
    "write_bytes",
    "write_json",
    "write_npz",
    "writing",
]

MAX_NPZ = 4 << 30  # bytes an archive may unpack to
SEAL = "seal"  # key of a JSON object's own hash


class Damaged(ValueError):
    """A file that is not what was written; the message names it."""


class Locked(RuntimeError):
    """Another living process holds the lock."""


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


def write_json(path: str | Path, value: Any, seal: bool = False) -> None:
    """Write JSON, whole or not at all. NaN becomes null. With `seal` an object gets a hash of its
    content, by which `read_json` tells a flipped bit."""
    plain = _plain(value)
    if seal:
        plain[SEAL] = _seal(plain)
    text = json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False)
    write_bytes(path, text.encode() + b"\n")


def read_json(path: str | Path) -> Any:
    """What `write_json` wrote. Raises Damaged naming the file; FileNotFoundError."""
    data = Path(path).read_bytes()
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{path} is damaged: {error}") from None
    if isinstance(value, dict) and SEAL in value and value.pop(SEAL) != _seal(value):
        raise Damaged(f"{path} is damaged: its content is not what was written")
    return value


def _seal(value: dict[str, Any]) -> str:
    rest = {k: v for k, v in value.items() if k != SEAL}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()[:32]


def append_lines(path: str | Path, values: Iterable[Any]) -> None:
    """Add a line of JSON per value. A torn last line is cut off first."""
    path = Path(path)
    text = "".join(json.dumps(_plain(v), allow_nan=False) + "\n" for v in values)
    with path.open("ab+") as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(max(0, end - 1))
            if file.read(1) != b"\n":
                file.seek(0)
                whole = file.read().rfind(b"\n") + 1
                file.truncate(whole)
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: str | Path) -> list[Any]:
    """All whole lines of a file of JSON lines; [] where there is none. A torn line is left out."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return []
    found = []
    for line in data.split(b"\n"):
        if line.strip():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
    return found


def write_npz(path: str | Path, **arrays: np.ndarray) -> None:
    """Write arrays, whole or not at all."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    write_bytes(path, buffer.getbuffer())


def read_npz(path: str | Path, limit: int = MAX_NPZ) -> dict[str, np.ndarray]:
    """Arrays of an `.npz`, without pickle. Raises Damaged, also where it would unpack to more
    than `limit` bytes."""
    try:
        with zipfile.ZipFile(path) as archive:
            total = sum(entry.file_size for entry in archive.infolist())
            if total > limit:
                raise Damaged(f"{path} would unpack to {total:,} bytes; at most {limit:,}")
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise
    except Damaged:
        raise
    except Exception as error:
        raise Damaged(f"{path} is damaged: {error}") from None


def sha256_file(path: str | Path) -> str:
    """SHA-256 of a file's bytes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- locks -------------------------------------------------------------------------------------


def is_process(pid: int, started: float | None = None) -> bool:
    """Whether a process lives (and is no zombie), and is the one that started at `started`."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    began = process_start(pid)
    if began is None:
        return not Path("/proc").is_dir() or Path(f"/proc/{pid}").is_dir()
    return began >= 0 and (started is None or abs(began - started) < 1)


def process_start(pid: int) -> float | None:
    """When a process began (clock ticks since boot); −1 for a zombie; None: unknown here."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return -1.0 if fields[0] in "ZX" else float(fields[19])


@contextmanager
def lock(path: str | Path, wait: float = 0.0) -> Iterator[None]:
    """Hold a lock file while inside. A dead process's lock is taken over.

    Args: wait: seconds to wait while another holds it.
    Raises: Locked, naming the process that holds it.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + wait
    while (holder := _take(path)) is not None:
        if time.monotonic() > end:
            raise Locked(f"process {holder} is already working in {path.parent}")
        time.sleep(0.02)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _take(path: Path) -> int | None:
    """Make the lock file our own; None, or the process that holds it."""
    own = {"pid": os.getpid(), "host": socket.gethostname(), "started": process_start(os.getpid())}
    with _alone(path.parent):
        if (holder := lock_holder(path)) is not None:
            return holder
        tidy(path.parent, f".{path.name}.")
        write_bytes(path, json.dumps(own).encode())  # in place of a dead process's
    return None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time is inside; the system lets go of it however the process ends."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def lock_holder(path: str | Path) -> int | None:
    """The living process that holds a lock; None where there is none."""
    try:
        held = json.loads(Path(path).read_text())
        pid = int(held["pid"])
        if held.get("host") != socket.gethostname():
            return pid  # another machine's: it cannot be asked
        return pid if is_process(pid, held.get("started")) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _plain(value: Any) -> Any:
    """Numbers, lists and words only; what is not finite becomes None."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    return value
