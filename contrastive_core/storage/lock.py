"""Locks that the system lets go of when their process ends, however it ends.

The lock itself is the system's (`filelock`); the file's text says which process holds it, for people, and for a signal
to it (Windows lets nobody read a locked file: there the text stands in a file beside it). Neither depends on the
machine's name, so a changed host name or a lock left by a killed process blocks nobody.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from contrastive_core.errors import Damaged, Locked
from contrastive_core.messages import N_, message
from contrastive_core.storage.atomic import make_folder
from contrastive_core.storage.json_files import JsonObject, read_object
from contrastive_core.storage.json_schema import fields, number, text, whole

GRACE = 0.25  # seconds: whoever only asks whether a lock is held holds it for a moment
CLOCK = 2.0  # seconds by which a process's start may differ between two looks: the clock is set
HOLDER = fields({"pid": whole(1, 2**31), "started": number(), "boot": text})


@contextmanager
def lock(path: str | Path, wait: float = 0.0) -> Iterator[None]:
    """Hold a lock file while inside. It is left in place, empty.
    Args: wait: seconds to wait while another holds it. Raises: Locked, naming the process that holds it; OSError."""
    path = Path(path)
    text_path = _text_path(path)
    make_folder(path.parent)
    guard = FileLock(path, max(wait, GRACE), mode=0o600, poll_interval=0.02, fallback_to_soft=False)
    try:
        guard.acquire()
    except Timeout:
        pid = lock_holder(path)
        who = message("process {pid}", pid=pid) if pid else N_("another process")
        raise Locked("{who} is already working in {parent}", who=who, parent=path.parent) from None
    try:
        holder = {"pid": os.getpid(), "started": process_start(os.getpid()), "boot": _boot_id()}
        text_path.write_text(json.dumps(holder), "utf-8")
        yield
    finally:
        with contextlib.suppress(OSError):  # the folder may have been moved meanwhile
            os.truncate(text_path, 0)
        guard.release()


def is_locked(path: str | Path) -> bool:
    """Whether a process holds a lock, on this machine or another that shares the folder."""
    holder = _holder(path)
    return holder is not None and (_is_here(holder) or _is_held(path))


def lock_holder(path: str | Path) -> int | None:
    """The process of this machine that holds a lock; None where there is none."""
    holder = _holder(path)
    return int(holder["pid"]) if holder is not None and _is_here(holder) else None


def _holder(path: str | Path) -> JsonObject | None:
    """Return the holder recorded in the lock file, alive or not."""
    try:
        return read_object(_text_path(Path(path)), HOLDER)
    except (OSError, Damaged):
        return None


def _text_path(path: Path) -> Path:
    """The file that names the holder: the lock file, where a locked one can be read."""
    return path.with_name(f"{path.name}.holder") if sys.platform == "win32" else path


def _is_here(holder: JsonObject) -> bool:
    return holder["boot"] == _boot_id() and is_process(holder["pid"], holder["started"])


def _is_held(path: str | Path) -> bool:
    """Whether the system holds the lock for some process: asked where that cannot be seen."""
    try:
        import fcntl
    except ImportError:  # Windows: its processes are all seen
        return False
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def is_process(pid: int, started: float | None = None) -> bool:
    """Whether a process lives (and is no zombie), and is the one that started at `started`."""
    began = process_start(pid)
    return began is not None and (started is None or abs(began - started) < CLOCK)


def process_start(pid: int) -> float | None:
    """When a living process began, in seconds since 1970; None where there is none."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except (psutil.Error, ValueError, OverflowError):
        return None


@cache
def _boot_id() -> str:
    """Names this start of this machine: on another, a process number means nothing."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return str(round(psutil.boot_time() / 60))  # to the minute: the clock is set
