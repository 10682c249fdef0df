"""All that a page asks of the engine: questions whose answers are kept on disk, and short calls. A question is a
kind and plain values. Its answer is read from the store (`results`) or computed by the worker, whose progress is a
stage and a fraction. Pages and tabs that ask the same question share one computation."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contrastive_core.engine.worker_process import Call, Stopped, WorkerDied, WorkerProcess, newest_source
from contrastive_core.errors import LabError, sentence_of
from contrastive_core.messages import N_, message
from contrastive_core.progress import Progress

STARTING = Progress("starting", None)
STOPPED = N_("It was stopped.")
ANSWER = "contrastive_core.engine.answers:answer"

_lock = threading.RLock()
_asked: dict[Question, Asked] = {}
_worker: WorkerProcess | None = None


@dataclass(frozen=True)
class Question:
    """Something to compute: `key` names it, `result_path` is the file that holds its answer."""

    key: str
    kind: str
    values: Mapping[str, Any] = field(compare=False)
    result_path: Path

    def start(self, label: str = "") -> None:
        """Let the worker compute it, unless it does."""
        with _lock:
            if not self.is_running():
                call_ = _live_worker().call(ANSWER, self.kind, dict(self.values), reports=True)
                _asked[self] = Asked(self, label or self.kind, call_)

    def is_running(self) -> bool:
        asked = _asked.get(self)
        return asked is not None and not asked.call.outcome.done()

    def has_result(self) -> bool:
        return self.result_path.exists()

    def progress(self) -> Progress | None:
        """Its progress; None while nobody computes it."""
        asked = _asked.get(self)
        return asked.progress if asked is not None and self.is_running() else None

    def failure(self) -> str | None:
        """Why it was not answered; None while nothing is wrong."""
        asked = _asked.get(self)
        return asked.failure if asked is not None else None

    def stop(self) -> None:
        """Stop computing it."""
        if (asked := _asked.get(self)) is not None:
            asked.call.stop()

    def forget(self) -> None:
        """Forget its failure, unless it is being computed."""
        with _lock:
            if not self.is_running():
                _asked.pop(self, None)


@dataclass(eq=False)
class Asked:
    """A question that was sent to the worker. `is_dismissed` hides its failure."""

    question: Question
    label: str
    call: Call
    time: float = field(default_factory=time.time)
    is_dismissed: bool = False

    @property
    def progress(self) -> Progress:
        return self.call.last or STARTING

    @property
    def failure(self) -> str | None:
        """Why it has no answer; None while it is computed, and where it has one."""
        if not self.call.outcome.done() or (error := self.call.outcome.exception()) is None:
            return None
        if isinstance(error, Stopped):
            return STOPPED
        if isinstance(error, (LabError, ValueError, OSError)):
            return sentence_of(error)
        return message("It failed: {lines}", lines=f"{type(error).__name__}: {error}")


def asked_questions() -> list[Asked]:
    """Every question that this process asked, the oldest first."""
    with _lock:
        return sorted(_asked.values(), key=lambda asked: asked.time)


def call(function: str, *arguments: Any) -> Any:
    """The value of a short call in the worker, waited for.
    Args: function: "module:name"; arguments: values that pickle can send. Raises: the error of the function;
    WorkerDied where the worker was killed."""
    try:
        return _live_worker().call(function, *arguments).outcome.result()
    except WorkerDied as error:
        if not error.was_idle:
            raise
        return _live_worker().call(function, *arguments).outcome.result()


def warm_up() -> None:
    """Start the worker early: it imports its libraries before the first question."""
    _live_worker()


def worker_pid() -> int | None:
    """The process of the worker; None while there is none."""
    with _lock:
        return _worker.pid if _worker is not None and _worker.is_alive() else None


def end_worker() -> None:
    """End the worker; the next question starts another."""
    global _worker
    with _lock:
        if _worker is not None:
            _worker.end()
        _worker = None


def _live_worker() -> WorkerProcess:
    """The worker; a dead one, or an idle one with older code, is replaced."""
    global _worker
    with _lock:
        if _worker is not None and not _worker.is_busy() and _worker.code != newest_source():
            end_worker()
        if _worker is None or not _worker.is_alive():
            _worker = WorkerProcess()
        return _worker
