"""Child processes that run a command line and outlive the app. Each has a key, under which `folder` stores its log, its
progress and a record of its identity. These files are never in a folder of runs, which may come from anyone: a record
there could name any process. Closing, refreshing or duplicating a page does not affect a process."""

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from contrastive_core.base import storage
from contrastive_core.base.errors import Damaged, NotRegular
from contrastive_core.base.json_files import read_object, schema_of, write_json
from contrastive_core.base.lock import is_process, process_start
from contrastive_core.base.storage import ROOT, FileCache, data_home, file_stamp, open_regular, runs_home

NO_CONSOLE = 0x0800_0200  # Windows: CREATE_NO_WINDOW and CREATE_NEW_PROCESS_GROUP
# For children that outlive their parent: Ctrl-C in the terminal must not reach them.
OWN_SESSION: dict[str, Any] = {"creationflags": NO_CONSOLE} if sys.platform == "win32" else {"start_new_session": True}
COMMAND = [sys.executable, "-u", "-m", "contrastive_core"]
TAIL = 1 << 18  # maximum bytes read from a log
LOG = "log.txt"  # in the folder of a run that was renamed

_children: dict[int, subprocess.Popen[bytes]] = {}  # to reap ended children


class ProcessRecord(TypedDict):
    """The record of a process: its identity, its arguments and its result."""

    key: str
    pid: int
    time: float
    command: list[str]
    started: NotRequired[Any]
    label: NotRequired[str]
    group: NotRequired[str]
    asked: NotRequired[float]
    result: NotRequired[str]
    stopped: NotRequired[bool]
    dismissed: NotRequired[bool]


RECORD = replace(schema_of(ProcessRecord), required=("pid", "time", "command"))


def folder() -> Path:
    """Return this user's folder for logs, records and queue of the current runs, whoever created the runs' folder."""
    home = runs_home()
    stamp = file_stamp(home)
    return data_home() / "jobs" / _key_of(home, None if stamp is None else stamp[0])


@lru_cache(64)
def _key_of(home: Path, inode: int | None) -> str:
    """Return the key of a folder, from its resolved path. Cached by `inode`, because a link may get another target."""
    return hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:16]


def progress_path(key: str) -> Path:
    """Return the file in which a process reports its progress."""
    return folder() / f"{key}.progress"


def spawn(key: str, arguments: Sequence[str], **about: Any) -> None:
    """Start a command in its own session, with its output in the log of `key`.
    Args: about: plain values to store in the record. Raises: OSError."""
    storage.make_folder(folder())
    progress_path(key).unlink(missing_ok=True)
    began = time.time()
    command = [*COMMAND, *arguments, "--progress", str(progress_path(key))]
    with storage.new_file(folder() / f"{key}.log") as log:
        child = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, **OWN_SESSION
        )
    _children[child.pid] = child
    identity = {"pid": child.pid, "started": process_start(child.pid), "time": began}
    write_json(folder() / f"{key}.json", {**about, **identity, "command": list(arguments)})


def mark(key: str, **about: bool) -> None:
    """Update the record of a process."""
    if record := record_of(key):
        with contextlib.suppress(OSError):
            write_json(folder() / f"{key}.json", {**record, **about})


def records() -> list[ProcessRecord]:
    """Return the record of every started process."""
    return [record.copy() for path in sorted(folder().glob("*.json")) if (record := _cached_record(path))]


def record_of(key: str) -> ProcessRecord | None:
    """Return the record of the last process started under a key."""
    record = _cached_record(folder() / f"{key}.json")
    return record and record.copy()


def _read_record(path: Path) -> ProcessRecord | None:
    try:
        return cast(ProcessRecord, {**read_object(path, RECORD), "key": path.stem})
    except (Damaged, OSError):
        return None


_cached_record = FileCache(_read_record, 4096)  # the app reads all records every second


def pid_of(key: str) -> int | None:
    """Return the id of a key's running process, if any."""
    record = _cached_record(folder() / f"{key}.json")
    return record and pid_in(record)


def pid_in(record: ProcessRecord) -> int | None:
    """Return the id of the process of a record while it runs."""
    pid = record["pid"]
    if pid in _children and _children[pid].poll() is not None:
        return None
    return pid if is_process(pid, record.get("started")) else None


def terminate(key: str) -> None:
    """Ask the process of a key to end, and record the request."""
    if (pid := pid_of(key)) is None:
        return
    mark(key, stopped=True)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def log_of(key: str, lines: int = 200) -> str:
    """Return the last lines of a process's output."""
    text = log_bytes(key).decode("utf-8", "replace")
    return "\n".join(text.replace("\r", "\n").splitlines()[-lines:])


def log_bytes(key: str) -> bytes:
    """Return the end of a process's output; for a renamed run, the part stored in its folder."""
    for path in (folder() / f"{key}.log", runs_home() / key / LOG):
        with contextlib.suppress(OSError, NotRegular), open_regular(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            return file.read(TAIL)
    return b""


def forget(key: str) -> None:
    """Remove the files of an ended process."""
    for ending in ("json", "log", "progress"):
        (folder() / f"{key}.{ending}").unlink(missing_ok=True)
