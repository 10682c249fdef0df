"""Client of the worker process: starts it, sends requests, and replaces it when it dies. Pages use it for jobs
(jobs.py) and for the short calls at the end of this file, whose functions run in the worker, where torch is loaded."""

from __future__ import annotations

import itertools
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from contrastive_core.base import storage
from contrastive_core.base.memory import MemoryWatch, has_data_limit, most_memory
from contrastive_core.base.messages import N_
from contrastive_core.base.progress import STARTING, Progress
from contrastive_core.base.registry import Catalog, Knobs, LossEntry
from contrastive_core.base.storage import ROOT
from contrastive_core.data.dataset import DatasetInfo
from contrastive_core.engine import client, process
from contrastive_core.lab.lab_view import BatchRequest, LabBatch, LabView, TowerBatch, Trade
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import Resolved, TrainConfig
from contrastive_core.samples.sample_table import SampleRequest
from contrastive_core.spaces.small_samples import SmallImages, load_samples

LOG = "_worker.log"  # no run's: their names start with a letter or digit
HOMES = "CONTRASTIVE_LAB_"  # prefix of the variables with the folders of runs and caches
TOO_LARGE = N_(
    "It needs more than the memory it may use (half of this computer's). Choose fewer rows or smaller images."
)
KILLED = N_("The process was ended by another program or ran out of memory.")
DONE, FAILED, PROGRESS = "done", "failed", "progress"  # kinds of replies


class Request(NamedTuple):
    """A call of `function` ("module:name"), with an extra `OnProgress` argument if it `reports`. `environment` holds
    the variables with the folders of runs and caches."""

    number: int
    function: str
    arguments: tuple[Any, ...]
    reports: bool
    environment: dict[str, str]


class Stop(NamedTuple):
    """A request to stop call `number` at its next report of progress."""

    number: int


class Stopped(Exception):
    """The client stopped the call."""


class NeedsMemory(ValueError):
    """A result needs more memory than the worker may use."""


class WorkerDied(ValueError):
    """The worker ended before it replied."""


class WorkerWasIdle(WorkerDied):
    """The worker ended by itself, because it was idle, just before it was asked."""


@dataclass(eq=False)
class Call:
    """A request in progress: its outcome, and the last progress reported."""

    worker: WorkerProcess
    number: int
    outcome: Future[Any] = field(default_factory=Future)
    progress: Progress = STARTING

    def stop(self) -> None:
        """Stop waiting now; the worker stops at its next report of progress."""
        with suppress(InvalidStateError):
            self.outcome.set_exception(Stopped())
        self.worker.send(Stop(self.number))


class WorkerProcess:
    """A worker process. It ends when its pipe is closed, even if this process is killed."""

    def __init__(self) -> None:
        self.code = newest_source()
        self._numbers = itertools.count()
        self.calls: dict[int, Call] = {}
        self._lock = threading.Lock()
        with storage.new_file(storage.make_folder(process.folder()) / LOG) as log:
            command, pipe = [sys.executable, "-m", "contrastive_core.engine.worker"], subprocess.PIPE
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=log, **process.OWN_SESSION
            )
        self._watch = MemoryWatch(self._process, most_memory(), not has_data_limit())
        threading.Thread(target=self._read, daemon=True).start()

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()

    def call(self, function: str, *arguments: Any, reports: bool = False) -> Call:
        """Send a request. If the worker dies, the outcome is `WorkerDied`."""
        homes = {name: value for name, value in os.environ.items() if name.startswith(HOMES)}
        call = Call(self, next(self._numbers))
        self.calls[call.number] = call
        self.send(Request(call.number, function, arguments, reports, homes))
        if not self.is_alive():
            self._fail_all()
        return call

    def send(self, message: Request | Stop) -> None:
        assert self._process.stdin is not None
        with self._lock, suppress(OSError, ValueError):  # if it is dead, the reading thread reports it
            self._process.stdin.write(pickle.dumps(message))
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(Exception):  # the end of the pipe, or an incomplete reply
            while True:
                self._take(*pickle.load(self._process.stdout))
        self._process.kill()
        self._fail_all()

    def _take(self, number: int, kind: str, value: Any) -> None:
        if (call := self.calls.get(number)) is None:
            return
        if kind == PROGRESS:
            call.progress = call.progress.then(*value)
            return
        del self.calls[number]
        with suppress(InvalidStateError):  # it was stopped
            call.outcome.set_result(value) if kind == DONE else call.outcome.set_exception(value)

    def _fail_all(self) -> None:
        error = (WorkerDied if self._process.wait() else WorkerWasIdle)(
            TOO_LARGE if self._watch.is_exceeded else KILLED
        )
        for number in list(self.calls):
            if call := self.calls.pop(number, None):
                with suppress(InvalidStateError):
                    call.outcome.set_exception(error)


_lock = threading.RLock()
_worker: WorkerProcess | None = None


def call(function: str, *arguments: Any) -> Any:
    """Run a short call in the worker and return its value.
    Args: function: "module:name"; arguments: values that pickle can send. Raises: the function's errors; WorkerDied if
    the worker was killed."""
    with suppress(WorkerWasIdle):
        return _live_worker().call(function, *arguments).outcome.result()
    return _live_worker().call(function, *arguments).outcome.result()


def request(function: str, *arguments: Any) -> Call:
    """Start a call that reports its progress, and return it while it runs."""
    return _live_worker().call(function, *arguments, reports=True)


def warm_up() -> None:
    """Start the worker early, so that it imports its libraries before the first job."""
    _live_worker()


def end_worker() -> None:
    """Kill the worker; the next job starts a new one."""
    global _worker
    with _lock:
        if _worker is not None:
            _worker.end()
        _worker = None


def _live_worker() -> WorkerProcess:
    """Return a running worker; a dead one, or an idle one with outdated code, is replaced."""
    global _worker
    with _lock:
        if _worker is not None and not _worker.calls and _worker.code != newest_source():
            end_worker()
        if _worker is None or not _worker.is_alive():
            _worker = WorkerProcess()
        return _worker


def newest_source() -> float:
    """Return the modification time of the library's newest file, to replace a worker with older code."""
    return max((path.stat().st_mtime for path in (ROOT / "contrastive_core").rglob("*.py")), default=0.0)


# --- short calls ------------------------------------------------------------------------------------

F = TypeVar("F", bound=Callable[..., Any])


def in_worker(function: F) -> F:
    """Decorate a function of a torch-free module to run in the worker. Arguments and results are sent by pickle.
    Raises: the function's errors; WorkerDied if the worker was killed."""

    @wraps(function)
    def ask(*arguments: Any) -> Any:
        return client.call(f"{function.__module__}:{function.__name__}", *arguments)

    ask.body = function  # type: ignore[attr-defined]  # for the worker
    return cast(F, ask)


@in_worker
def lab_batch(run: Run, request: BatchRequest) -> LabBatch | TowerBatch:
    from contrastive_core.lab.batch import load_batch

    return load_batch(run, request)


@in_worker
def lab_view(batch: LabBatch | TowerBatch, pairing: str, loss: str, knobs: Knobs) -> LabView:
    from contrastive_core.lab.view import compute_view

    return compute_view(batch, pairing, loss, knobs)


@in_worker
def temperature_trade(scores: np.ndarray, negative: np.ndarray, same_class: np.ndarray | None) -> list[Trade]:
    from contrastive_core.lab.view import trade

    return trade(scores, negative, same_class)


@in_worker
def about_loss(loss: str, knobs: Knobs) -> LossEntry:
    from contrastive_core.lab import view

    return view.about_loss(loss, knobs)


@in_worker
def explain_sample(request: SampleRequest, sample: str) -> Any:
    from contrastive_core.samples import run_samples

    return run_samples.explain_sample(request, sample)


@in_worker
def nearest_to_picture(run: Run, split: str, picture: bytes, count: int) -> list[tuple[str, float]]:
    """Return the ids of a split's images that are most similar to a picture. Raises: BadSetting for other files."""
    from contrastive_core.compare import likeness

    return likeness.nearest_to_picture(run, split, picture, count)


@in_worker
def damage_of(run: Run) -> list[str]:
    """List the damaged files of a run, one sentence each, without changing anything."""
    from contrastive_core.engine.run_folders import damage

    return list(damage(run))


@in_worker
def branch(run: Run, epoch: int | None, *every: Mapping[str, object]) -> list[Run]:
    """Create runs that continue from a state of another run with other settings. Raises: ValueError."""
    from contrastive_core.train import changes

    return changes.branch(run, *every, epoch=epoch)


@in_worker
def resolved_settings(config: TrainConfig, facts: DatasetInfo) -> Resolved:
    """Return the settings of a training for a form, with the reason for each default. Raises: ValueError."""
    from contrastive_core.train import setup

    return setup.of_page(config, facts)


@in_worker
def make_catalog() -> Catalog:
    from contrastive_core.engine import catalog

    return catalog.make()


@in_worker
def small_samples(name: str, root: str | None = None) -> SmallImages:
    return load_samples(name, root)
