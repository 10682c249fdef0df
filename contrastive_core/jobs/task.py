"""A task: one command in a child process, and the file that it leaves. Torch-free.

Training, scores, maps, tables of samples, decoding, previews and checks are all tasks. What a page
needs of one: start it, say how far it is, why it failed, stop it, and whether its result is there.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrastive_core.jobs import process
from contrastive_core.paths import ROOT
from contrastive_core.progress import Progress, read_progress
from contrastive_core.storage.lock import lock

__all__ = ["Task", "run_json"]

PATIENCE = 60.0  # seconds to wait for another process that starts a task
STARTING = Progress("starting", None)
STOPPED = "It was stopped."
KILLED = "Its process was ended from outside, or had too little memory."


@dataclass(frozen=True)
class Task:
    """`key` names it, as a file name; `arguments` are the command line's; `result_path` is the file
    that stands when all is done, written anew each time."""

    key: str
    arguments: tuple[str, ...]
    result_path: Path

    def start(self, **about: Any) -> None:
        """Run it, unless a process is at it: of two that start at once, one does.

        Args: about: plain values that its record keeps. Raises: OSError; Locked.
        """
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
        if record is None or self.is_running() or self._is_newer_than(record["time"]):
            return None
        return STOPPED if record.get("stopped") else _reason(process.log_of(self.key))

    def stop(self) -> None:
        """End its process; nothing half-made is left."""
        process.terminate(self.key)

    def forget(self) -> None:
        """Remove what is kept of its process, unless it is at work."""
        if not self.is_running():
            process.forget(self.key)

    def _is_newer_than(self, began: float) -> bool:
        try:
            return self.result_path.stat().st_mtime >= began
        except OSError:
            return False


def _reason(log: str) -> str:
    """What a process that failed said of it last; torchrun writes more behind that."""
    lines = [line for line in log.splitlines() if line.strip()]
    if errors := [line for line in lines if line.startswith("error: ")]:
        return errors[-1].removeprefix("error: ")
    return f"It broke off: {lines[-1].strip()}" if "Traceback (" in log else KILLED


def run_json(
    *arguments: str, seconds: float = 300, expected: Sequence[int] = (0,)
) -> dict[str, Any]:
    """What a short command prints with `--json`, waited for.

    Raises: ValueError with the sentence it ended with, for an exit status that is not `expected`.
    """
    command = process.command_line([*arguments, "--json"])
    try:
        ended = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"{arguments[0]} took more than {seconds:.0f} s") from None
    if ended.returncode not in expected or not ended.stdout.strip():
        raise ValueError(_reason(ended.stderr))
    return dict(json.loads(ended.stdout))
