"""Have a question answered by a process of its own, and hear how far it is. Torch-free."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from contrastive_core.jobs import process, results

__all__ = ["ask", "failed", "progress", "share_of"]


def ask(kind: str, values: dict[str, Any]) -> None:
    """Start the process that answers, unless one is at it."""
    task = results.task(kind, values)
    if process.pid_of(task) is None:
        process.spawn(task, ["answer", kind, json.dumps(values)])


def progress(kind: str, values: dict[str, Any]) -> str | None:
    """What that process is doing; None when there is none."""
    task = results.task(kind, values)
    if process.pid_of(task) is None:
        return None
    return process.log_of(task, 1) or "starting"


def failed(kind: str, values: dict[str, Any]) -> str | None:
    """Why there is no answer although its process has ended; None while nothing is wrong."""
    task = results.task(kind, values)
    if process.pid_of(task) is not None or not (log := process.log_of(task)):
        return None
    if results.path(kind, values).exists():
        return None
    time.sleep(0.05)  # the file may have been renamed into its place between the two looks
    if results.path(kind, values).exists():
        return None
    last = log.strip().rsplit("\n", 1)[-1]
    return last.removeprefix("error: ") if last.startswith("error: ") else "Its process was ended."


def share_of(text: str) -> float:
    """The share that a line of progress names, 0 to 1; 0.1 where it names none."""
    found = re.search(r"(\d+) %", text)
    return min(1.0, int(found[1]) / 100) if found else 0.1
