"""Locks that the system lets go of when their process ends, however it ends.

The lock itself is the system's (`filelock`); the file's text says which process holds it, for people (Windows lets
nobody read a locked file: there the text stands in a file beside it). Neither depends on the machine's name, so a
changed host name or a lock left by a killed process blocks nobody. A process to be signaled is named by a text below
`data_home` alone: a lock file of a folder of runs may come from anybody.
"""

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
from contrastive_core.base.json_files import JsonObject, read_object
from contrastive_core.base.json_schema import fields, plain, whole
from contrastive_core.base.messages import N_, message
from contrastive_core.base.paths import data_home
from contrastive_core.base.safe_files import NO_WAIT, file_stamp, is_regular, make_folder, new_file, printable

YOUNG = 60.0  # seconds: a scratch folder is not locked yet in the moment after it was made
GRACE = 0.25  # seconds: whoever only asks whether a lock is held holds it for a moment
HOLDER = fields({"pid": whole(1, 2**31), "started": plain})


@contextmanager
def lock(path: str | Path, wait: float = 0.0) -> Iterator[None]:
    """Hold a lock file while inside. It is left in place, empty.
    Args: wait: seconds to wait while another holds it. Raises: Locked, naming the process that holds it; NotRegular
    where it is a link or no file; OSError."""
    path = Path(path)
    texts = [_text_path(path), _own_text_path(path)]
    make_folder(path.parent)
    for file in (path, texts[0]):
        if file.is_symlink() or (file.exists() and not is_regular(file)):
            raise NotRegular("{path} is a link or not a regular file, so it cannot be a lock", path=printable(file))
    guard = FileLock(path, max(wait, GRACE), mode=0o600, poll_interval=0.02, fallback_to_soft=False)
    try:
        guard.acquire()
    except Timeout:
        holder = _holder(texts[0])
        is_here = holder is not None and is_process(holder["pid"], holder["started"])
        who = message("process {pid}", pid=holder["pid"]) if holder and is_here else N_("another process")
        raise Locked("{who} is already working in {parent}", who=who, parent=path.parent) from None
    try:
        text = json.dumps({"pid": os.getpid(), "started": process_start(os.getpid())}).encode()
        texts[0].write_bytes(text)
        if texts[1] != texts[0]:
            with contextlib.suppress(OSError), new_file(make_folder(texts[1].parent) / texts[1].name) as own:
                own.write(text)
        yield
    finally:
        with contextlib.suppress(OSError):  # the folder may have been moved meanwhile
            os.truncate(texts[0], 0)
        if texts[1] != texts[0]:
            with contextlib.suppress(OSError):
                texts[1].unlink(missing_ok=True)
        guard.release()


def is_locked(path: str | Path) -> bool:
    """Return whether a process holds a lock, on this machine or another that shares the folder."""
    holder = _holder(_text_path(Path(path)))  # without a text the lock is not tried: that keeps others from it
    if holder is not None and sys.platform == "win32":  # its processes are all seen
        return is_process(holder["pid"], holder["started"])
    return holder is not None and _is_held(path)


def lock_holder(path: str | Path) -> int | None:
    """The process of this user on this machine that holds a lock, so that it can be signaled; None where there is none,
    or where only the lock file says so."""
    holder = _holder(_own_text_path(Path(path)))
    return int(holder["pid"]) if holder is not None and is_process(holder["pid"], holder["started"]) else None


def _holder(text_path: Path) -> JsonObject | None:
    """Return the holder recorded in a text, alive or not."""
    try:
        return read_object(text_path, HOLDER)
    except (OSError, Damaged):
        return None


def _text_path(path: Path) -> Path:
    """The file that names the holder: the lock file, where a locked one can be read."""
    return path.with_name(f"{path.name}.holder") if sys.platform == "win32" else path


def _own_text_path(path: Path) -> Path:
    """The file below `data_home` that names the holder: the text itself where it lies there."""
    if data_home() in path.parents:
        return _text_path(path)
    return data_home() / "locks" / f"{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:24]}.json"


def _is_held(path: str | Path) -> bool:
    """Return whether the system holds the lock for some process."""
    import fcntl

    try:
        handle = os.open(path, os.O_RDONLY | NO_WAIT)
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


def is_process(pid: int, started: object) -> bool:
    """Return whether a process lives, is no zombie, and has the start `started`, as `process_start` gives it."""
    return started is not None and process_start(pid) == started


def process_start(pid: int) -> str | None:
    """Return an identifier of the living process with that number; None where there is none. It does not follow the
    clock: on Linux it is the start of the machine and the ticks from then on, elsewhere the time that the system keeps
    of the process's start.
    """
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
    """Names this start of this machine: after another, or on another, a process number means nothing."""
    with contextlib.suppress(OSError):  # a container may hide it
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder of this process below the data home while inside; the system's is often kept in memory, and
    others can list it. A killed process leaves its folder behind, and the next one removes it. Raises OSError."""
    home = make_folder(data_home() / "scratch")
    for folder in home.iterdir():
        stamp = file_stamp(folder)
        is_old = stamp is not None and time.time() - stamp[2] / 1e9 > YOUNG
        if is_old and not is_locked(folder / "lock"):
            shutil.rmtree(folder, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(dir=home))
    try:
        with lock(folder / "lock"):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
