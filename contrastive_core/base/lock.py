"""Locks that the system releases when their process ends for any reason.

The lock is the system's (`filelock`), on an empty file. A text below `data_home` names the process that holds it, for
messages and signals. Neither depends on the host name, so a renamed machine or a killed process blocks nobody. The lock
file itself names no process, because one in a folder of runs may come from anyone."""

import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from contrastive_core.base.errors import Damaged, Locked, NotRegular
from contrastive_core.base.json_files import fields, plain, read_object, whole
from contrastive_core.base.messages import N_, message, printable
from contrastive_core.base.storage import NO_WAIT, data_home, file_stamp, is_regular, make_folder, new_file

YOUNG = 60.0  # seconds: a new scratch folder is not locked at once
GRACE = 0.25  # seconds: a check whether a lock is held takes it for a moment
LOOK = 0.1  # seconds that such a check waits for another one, on Windows
HOLDER = fields({"pid": whole(1, 2**31), "started": plain})


@contextmanager
def lock(path: str | Path, wait: float = 0.0) -> Iterator[None]:
    """Context that holds a lock file. The file stays in place, empty. Args: wait: seconds to wait while another process
    holds the lock. Raises: Locked, with the holding process; NotRegular for a symbolic link or special file; OSError.
    """
    path = Path(path)
    make_folder(path.parent)
    if path.is_symlink() or (path.exists() and not is_regular(path)):
        raise NotRegular("{path} is a link or not a regular file, so it cannot be a lock", path=printable(path))
    guard = FileLock(path, max(wait, GRACE), mode=0o600, poll_interval=0.02, fallback_to_soft=False)
    try:
        guard.acquire()
    except Timeout:
        pid = lock_holder(path)
        who = N_("another process") if pid is None else message("process {pid}", pid=pid)
        raise Locked("{who} is already working in {parent}", who=who, parent=path.parent) from None
    text_path = _text_path(path)  # before the folder can be moved
    try:
        with contextlib.suppress(OSError), new_file(make_folder(text_path.parent) / text_path.name) as file:
            file.write(json.dumps({"pid": os.getpid(), "started": process_start(os.getpid())}).encode())
        yield
    finally:
        with contextlib.suppress(OSError):
            text_path.unlink(missing_ok=True)
        guard.release()


def is_locked(path: str | Path) -> bool:
    """Return whether a process holds the lock, on this machine or on another that shares the folder."""
    if sys.platform == "win32":
        if not is_regular(path):
            return False
        try:
            with FileLock(path, LOOK, poll_interval=0.02, fallback_to_soft=False):
                return False
        except OSError as error:
            return isinstance(error, Timeout)
    import fcntl

    try:
        handle = os.open(path, os.O_RDONLY | NO_WAIT)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    finally:
        os.close(handle)
    return False


def lock_holder(path: str | Path) -> int | None:
    """Return the id of this user's process on this machine that holds the lock; None if there is none."""
    try:
        holder = read_object(_text_path(Path(path)), HOLDER)
    except (OSError, Damaged):
        return None
    return int(holder["pid"]) if is_process(holder["pid"], holder["started"]) else None


def _text_path(path: Path) -> Path:
    """Return the file that names the process that holds a lock."""
    return data_home() / "locks" / f"{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:24]}.json"


def is_process(pid: int, started: object) -> bool:
    """Return whether process `pid` runs, is not a zombie, and has the start `started` (see `process_start`)."""
    return started is not None and process_start(pid) == started


def process_start(pid: int) -> str | None:
    """Return an identifier of a running process's start; None if there is no such process. It does not depend on the
    clock: on Linux it is the boot id and the ticks since boot, elsewhere the start time that the system keeps."""
    if sys.platform == "linux":
        try:
            state, *numbers = Path(f"/proc/{pid:d}/stat").read_bytes().rpartition(b") ")[2].split()
            return None if state in b"ZX" else f"{_boot_id()} {int(numbers[18])}"
        except (OSError, ValueError, IndexError):
            return None
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else repr(process.create_time())
    except (psutil.Error, ValueError, OverflowError):
        return None


@cache
def _boot_id() -> str:
    """Return the identifier of this boot: process ids mean nothing after a restart or on another machine."""
    with contextlib.suppress(OSError):  # a container may hide it
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Context with a temporary folder of this process below the data home. The system's folder is often in memory and
    others can list it. The next process removes the folder of a killed one. Raises OSError."""
    home = make_folder(data_home() / "scratch")
    for folder in home.iterdir():
        stamp = file_stamp(folder)
        is_old = stamp is not None and time.time() - stamp[2] / 1e9 > YOUNG
        if is_old and not is_locked(folder / "lock"):
            with contextlib.suppress(OSError):
                _text_path(folder / "lock").unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(dir=home))
    try:
        with lock(folder / "lock"):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
