"""The memory limit of a process: half of the memory of the machine or container.

On Linux the system refuses more, and a reader gets a MemoryError: RLIMIT_AS in a sandbox, RLIMIT_DATA in the worker.
macOS and Windows have no such limits, and the driver of a GPU maps more memory than it uses. There, the parent
process checks the resident memory of the child and kills it."""

import contextlib
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

import psutil

DRIVERS = ("/dev/nvidiactl", "/dev/kfd")  # of GPUs
HAS_LIMITS = sys.platform == "linux"
INTERVAL = 0.1  # seconds between two checks of another process
GROUPS = Path("/sys/fs/cgroup")
OWN_GROUP = Path("/proc/self/cgroup")


@cache
def machine_memory() -> int:
    """Return the memory in bytes of this machine, or the limit of the container's control groups if that is lower."""
    total = int(psutil.virtual_memory().total)
    group = Path()
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = [line.split(":", 2) for line in OWN_GROUP.read_text().splitlines()]
        group = Path(next(path for number, _, path in lines if number == "0").lstrip("/"))
    files = [GROUPS / folder / "memory.max" for folder in (group, *group.parents)]
    for file in (*files, GROUPS / "memory" / "memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # no such group, or "max"
            total = min(total, int(file.read_text()))
    return total


def most_memory() -> int:
    """Return the memory in bytes that one process may use."""
    return machine_memory() // 2


def has_data_limit() -> bool:
    """Return whether a worker process can limit its own memory."""
    return HAS_LIMITS and not any(Path(driver).exists() for driver in DRIVERS)


def limit_own_data(limit: int) -> None:
    """Limit this process to `limit` bytes of allocated memory, if the system supports it."""
    if has_data_limit():
        import resource

        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


class MemoryWatch:
    """Watchdog that kills a child process with too much resident memory. `is_needed`: False if the system limits it."""

    def __init__(self, process: subprocess.Popen[Any], limit: int, is_needed: bool) -> None:
        self.is_exceeded = False
        self._process, self._limit = process, limit
        if is_needed:
            threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        with contextlib.suppress(psutil.Error):  # it has ended
            child = psutil.Process(self._process.pid)
            while self._process.poll() is None:
                if child.memory_info().rss > self._limit:
                    self.is_exceeded = True
                    self._process.kill()
                try:
                    self._process.wait(INTERVAL)
                except subprocess.TimeoutExpired:
                    continue
