"""Locks are files that name their process and know when it has died. Torch-free."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contrastive_core.errors import Locked
from contrastive_core.storage.atomic import tidy, write_bytes

__all__ = ["is_process", "lock", "lock_holder", "process_start"]


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


def lock_holder(path: str | Path, here: bool = False) -> int | None:
    """The living process that holds a lock; None where there is none, or, with `here`, where it is
    another machine's."""
    try:
        held = json.loads(Path(path).read_text())
        pid = int(held["pid"])
        if held.get("host") != socket.gethostname():
            return None if here else pid  # it cannot be asked whether it lives
        return pid if is_process(pid, held.get("started")) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
