"""One of the adviser's runs: it waits for its turn among all others, and is waited for."""

from __future__ import annotations

import contextlib
import time

from contrastive_core import runs
from contrastive_core.errors import CannotGoOn
from contrastive_core.jobs import queue, training

__all__ = ["train_and_wait"]

POLL = 0.3  # seconds


def train_and_wait(name: str, arguments: list[str]) -> str:
    """Let a run be trained, and wait for it; why it failed, or nothing. Who is interrupted stops
    it. Raises CannotGoOn when it was stopped meanwhile."""
    try:
        return _waited_for(name, arguments)
    except KeyboardInterrupt:
        queue.remove(name)
        with contextlib.suppress(ValueError, OSError):
            training.stop(name)
        raise


def _waited_for(name: str, arguments: list[str]) -> str:
    begun = False
    while (status := _status(name)) != "done":
        waits = name in {job.name for job in queue.queue()}
        if status == "running" or waits:
            begun = True
        elif status == "":
            if (why := training.failure(name)) is not None:
                return why
            with contextlib.suppress(FileExistsError):  # it began between the two looks
                queue.enqueue(name, arguments)
        elif begun and status == "stopped":
            raise CannotGoOn(f"{name} was stopped; the same command goes on with it")
        elif begun:
            return str(runs.load(name).status().get("reason") or "it broke off")
        else:
            queue.resume(name)
            begun = True
        queue.go_on()
        time.sleep(POLL)
    return ""


def _status(name: str) -> str:
    """A run's status; "" while there is none."""
    try:
        run = runs.load(name)
    except (ValueError, OSError):
        return ""
    return "running" if training.at_work(run) else str(run.status()["status"])
