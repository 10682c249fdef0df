"""A task: one command in a run process, and the file that it leaves.

Trainings, imports, reports, the adviser and everything else that takes more than a few minutes are
tasks. A page starts one, shows its progress and its failure, and stops it, like a question.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrastive_core.engine import process
from contrastive_core.engine.client import STARTING, STOPPED
from contrastive_core.engine.worker_process import KILLED
from contrastive_core.messages import message
from contrastive_core.progress import Progress, read_progress
from contrastive_core.storage.lock import lock

PATIENCE = 60.0  # seconds to wait for another process that starts a task


@dataclass(frozen=True)
class Task:
    """`key` names it, as a file name; `arguments` are the command line's; `result_path` is the file
    that stands when all is done, written anew each time."""

    key: str
    arguments: tuple[str, ...]
    result_path: Path

    def start(self, **about: Any) -> None:
        """Run it, unless a process is at it: of two that start at once, one does.
        Args: about: plain values that its record keeps. Raises: OSError; Locked."""
        with lock(process.folder() / "start.lock", wait=PATIENCE):
            if not self.is_running():
                process.spawn(self.key, self.arguments, result=str(self.result_path), **about)

    def is_running(self) -> bool:
        return process.pid_of(self.key) is not None

    def has_result(self) -> bool:
        return self.result_path.exists()

    def progress(self) -> Progress | None:
        """How far it is; None while no process is at it."""
        if not self.is_running():
            return None
        return read_progress(process.progress_path(self.key)) or STARTING

    def failure(self) -> str | None:
        """Why its process ended without a result; None while nothing is wrong, or none ran."""
        record = process.record_of(self.key)
        if record is None or self.is_running():
            return None
        with contextlib.suppress(OSError):
            if self.result_path.stat().st_mtime >= record["time"]:
                return None
        if record.get("stopped"):
            return STOPPED
        lines = [line for line in process.log_of(self.key).splitlines() if line.strip()]
        if errors := [line for line in lines if line.startswith("error: ")]:
            return errors[-1].removeprefix("error: ")  # torchrun writes more behind that
        is_known = any("Traceback (" in line for line in lines)
        return message("It broke off: {lines}", lines=lines[-1].strip()) if is_known else KILLED

    def stop(self) -> None:
        """End its process; nothing half-made is left."""
        process.terminate(self.key)

    def forget(self) -> None:
        """Remove what is kept of its process, unless it is at work."""
        if not self.is_running():
            process.forget(self.key)
