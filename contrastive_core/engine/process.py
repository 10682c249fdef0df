"""Run processes: child processes that run the command line and outlive the app.

Each has a key, under which `.jobs` in the folder of runs keeps its log, its progress and a record
of who it is. A page that is closed, refreshed or opened twice changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

from contrastive_core.paths import ROOT, runs_home
from contrastive_core.storage.json_files import read_json, write_json
from contrastive_core.storage.lock import is_process, process_start

__all__ = [
    "OWN_SESSION",
    "ProcessRecord",
    "command_line",
    "folder",
    "forget",
    "log_of",
    "pid_of",
    "progress_path",
    "record_of",
    "records",
    "spawn",
    "terminate",
]

ENDINGS = ("json", "log", "progress")
NO_CONSOLE = 0x0800_0200  # Windows: CREATE_NO_WINDOW and CREATE_NEW_PROCESS_GROUP
# Of a child that outlives its parent: Ctrl-C in the terminal is for the parent.
OWN_SESSION: Mapping[str, Any] = (
    {"creationflags": NO_CONSOLE} if sys.platform == "win32" else {"start_new_session": True}
)
TAIL = 1 << 18  # bytes of a log that are read at most

_children: dict[int, subprocess.Popen[bytes]] = {}  # so that ended ones are reaped


class ProcessRecord(TypedDict, total=False):
    """What is kept of a process: who it is, what it was started with, and how that ended."""

    key: str
    pid: int
    started: float | None
    time: float
    command: list[str]
    label: str
    device: str
    result: str
    stopped: bool
    dismissed: bool


def folder() -> Path:
    """Where processes' logs and records are kept."""
    return runs_home() / ".jobs"


def progress_path(key: str) -> Path:
    """The file of lines in which a process says how far it is."""
    return folder() / f"{key}.progress"


def command_line(arguments: Sequence[str]) -> list[str]:
    """What the system is given to run a command of this library."""
    return [sys.executable, "-u", "-m", "contrastive_core", *arguments]


def spawn(key: str, arguments: Sequence[str], **about: Any) -> None:
    """Start the command line in a session of its own, its output in a log called `key`.

    Args: about: plain values that the record keeps beside the process. Raises: OSError.
    """
    folder().mkdir(parents=True, exist_ok=True)
    progress_path(key).unlink(missing_ok=True)
    began, log = time.time(), folder() / f"{key}.log"
    arguments_with_progress = [*arguments, "--progress", str(progress_path(key))]
    pid = _popen(arguments_with_progress, log)
    identity = {"pid": pid, "started": process_start(pid), "time": began}
    record = {**about, **identity, "command": list(arguments)}
    write_json(folder() / f"{key}.json", record)


def _popen(arguments: Sequence[str], log: Path) -> int:
    with log.open("wb") as out:
        child = subprocess.Popen(
            command_line(arguments),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            **OWN_SESSION,
        )
    _children[child.pid] = child
    return child.pid


def records() -> list[ProcessRecord]:
    """What is kept of every process that was started: `key`, `pid`, `time`, `command`, …"""
    paths = sorted(folder().glob("*.json"))
    return [{**record, "key": p.stem} for p in paths if (record := record_of(p.stem))]


def record_of(key: str) -> ProcessRecord | None:
    """The record of the process that was started last under a key."""
    try:
        record = dict(read_json(folder() / f"{key}.json"))
        return cast(ProcessRecord, {**record, "pid": int(record["pid"]), "time": float(record["time"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def pid_of(key: str) -> int | None:
    """The living process of a key, if any."""
    record = record_of(key)
    if record is None:
        return None
    pid = record["pid"]
    if pid in _children and _children[pid].poll() is not None:
        return None
    return pid if is_process(pid, record.get("started")) else None


def terminate(key: str) -> None:
    """Ask the process of a key to end, and keep that it was asked."""
    if (pid := pid_of(key)) is None:
        return
    with contextlib.suppress(OSError):
        write_json(folder() / f"{key}.json", {**(record_of(key) or {}), "stopped": True})
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def log_of(key: str, lines: int = 200) -> str:
    """The last lines that a process wrote; of a run that was renamed, those in its folder."""
    for path in (folder() / f"{key}.log", runs_home() / key / "log.txt"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            text = file.read().decode("utf-8", "replace")
            return "\n".join(text.replace("\r", "\n").splitlines()[-lines:])
    return ""


def forget(key: str) -> None:
    """Remove what is kept of an ended process."""
    for ending in ENDINGS:
        (folder() / f"{key}.{ending}").unlink(missing_ok=True)
