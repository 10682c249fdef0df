"""Jobs: computations that pages start, follow and stop. Torch-free.
A job runs in the warm worker, or as a command in its own process, which outlives the app; `Job.start` chooses.
Pages and tabs that request the same job share one computation, and an existing result is not computed again."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contrastive_core.base.errors import LabError, sentence_of
from contrastive_core.base.lock import lock
from contrastive_core.base.messages import N_, message
from contrastive_core.base.progress import STARTING, Progress, read_progress
from contrastive_core.compare.evaluation import evaluation_path
from contrastive_core.data import datasets
from contrastive_core.data.dataset import form_of
from contrastive_core.engine import client, process
from contrastive_core.engine.client import KILLED, Call, Stopped
from contrastive_core.runs.run import Run
from contrastive_core.samples.sample_table import SampleRequest
from contrastive_core.spaces import results
from contrastive_core.spaces.space import TOWERS, Space, content_of, path_of

STOPPED = N_("It was stopped.")
LARGE = 50_000  # rows; an analysis of more takes minutes
START_PATIENCE = 60.0  # seconds to wait for another process that starts a job
ANSWER = "contrastive_core.engine.answers:answer"

_lock = threading.RLock()
_asked: dict[str, Asked] = {}  # jobs of this process, by key


@dataclass(frozen=True)
class Job:
    """A computation with a result file. `key` is its file name; `result_path` exists once all is done.

    `arguments` are its command line. With a `kind` (of `engine/answers`) and `values` it can also run in the worker,
    which is faster but ends with the app. The key of a training or an import is the run's name; all other keys begin
    with `_`, which run names cannot."""

    key: str
    result_path: Path = field(compare=False)
    arguments: tuple[str, ...] = field(default=(), compare=False)
    kind: str = field(default="", compare=False)
    values: Mapping[str, object] = field(default_factory=dict, compare=False)
    is_long: bool = field(default=False, compare=False)

    def start(self, label: str = "", **about: Any) -> None:
        """Start the job unless it already runs in the worker or a process; a lock prevents two simultaneous starts.
        Args: about: plain values to store in the process's record. Raises: OSError; Locked."""
        if self.kind and not self.is_long:
            with _lock:
                if not self.is_running():
                    call = client.request(ANSWER, self.kind, dict(self.values))
                    _asked[self.key] = Asked(self, label or self.kind, call)
            return
        with lock(process.folder() / "start.lock", wait=START_PATIENCE):
            if not self.is_running():
                about |= {"label": label} if label else {}
                process.spawn(self.key, self.arguments, result=str(self.result_path), **about)

    @property
    def _in_worker(self) -> Asked | None:
        """The job's request to the worker while it runs."""
        asked = _asked.get(self.key)
        return asked if asked is not None and not asked.call.outcome.done() else None

    def is_running(self) -> bool:
        return self._in_worker is not None or process.pid_of(self.key) is not None

    def progress(self) -> Progress | None:
        """Return the progress of the job; None if it is not running."""
        if asked := self._in_worker:
            return asked.call.progress
        if process.pid_of(self.key) is None:
            return None
        return read_progress(process.progress_path(self.key)) or STARTING

    def failure(self) -> str | None:
        """Return why there is no result; None while the job runs, has succeeded or was never started."""
        if self.is_running():
            return None
        if asked := _asked.get(self.key):
            return asked.failure
        if (record := process.record_of(self.key)) is None:
            return None
        with contextlib.suppress(OSError):
            if self.result_path.stat().st_mtime >= record["time"]:
                return None
        if record.get("stopped"):
            return STOPPED
        lines = [line for line in process.log_of(self.key).splitlines() if line.strip()]
        if errors := [line for line in lines if line.startswith("error: ")]:
            return errors[-1].removeprefix("error: ")
        is_known = any("Traceback (" in line for line in lines)
        return message("The computation failed: {lines}", lines=lines[-1].strip()) if is_known else KILLED

    def stop(self) -> None:
        """Stop the job. It leaves no partial result."""
        if asked := self._in_worker:
            asked.call.stop()
        process.terminate(self.key)

    def forget(self) -> None:
        """Forget the job's failure, unless it is running."""
        if not self.is_running():
            _asked.pop(self.key, None)
            process.forget(self.key)


@dataclass(eq=False)
class Asked:
    """A job that was requested from the worker. `is_dismissed` hides its failure."""

    job: Job
    label: str
    call: Call
    time: float = field(default_factory=time.time)
    is_dismissed: bool = False

    @property
    def failure(self) -> str | None:
        """The reason why it failed; None while it runs and after success."""
        if not self.call.outcome.done() or (error := self.call.outcome.exception()) is None:
            return None
        if isinstance(error, Stopped):
            return STOPPED
        if isinstance(error, (LabError, ValueError, OSError)):
            return sentence_of(error)
        return message("The computation failed: {lines}", lines=f"{type(error).__name__}: {error}")


def asked_of_worker() -> list[Asked]:
    """Return all jobs that this process requested from the worker, the oldest first."""
    with _lock:
        return sorted(_asked.values(), key=lambda asked: asked.time)


# --- what pages wait for -----------------------------------------------------------------------------


def analysis(kind: str, values: Mapping[str, Any]) -> Job:
    """Return the job of an analysis, which is stored under the hash of its values."""
    plain = dict(values)
    compared = [Space(**space) for space in plain["spaces"]] if kind == "comparison" else []
    is_long = any((run := space.run) is not None and _is_large(run) for space in compared)
    return _job(results.key(kind, plain), results.path(kind, plain), kind, plain, is_long)


def evaluation(run: Run) -> Job:
    """Return the job that embeds and scores a run. Raises ValueError without weights."""
    key = f"evaluate.{run.name}.{run.weights_hash()[:12]}"
    return _job(key, evaluation_path(run), "evaluation", {"run": run.name}, _is_large(run))


def embedding(run: Run, split: str, layer: str = "z") -> Job:
    """Return the job that embeds a split of a run: h and z, for the layer "towers" also both towers. Raises ValueError
    without weights."""
    layer = layer if layer == TOWERS else "z"
    key = f"embed.{run.name}.{split}.{layer}.{content_of(run, layer)[:12]}"
    values = {"run": run.name, "split": split, "layer": layer}
    return _job(key, path_of(run, split, layer), "embedding", values, _is_large(run))


def samples(request: SampleRequest, rows: int = 0) -> Job:
    """Return the job that creates a table of all samples. `rows`: their number, if known."""
    path = request.path()
    values = {"name": request.name, "split": request.split, "loss": request.loss}
    is_large = rows > LARGE or (request.run is not None and _is_large(request.run))
    return _job(f"{request.name}.{path.stem}", path, "samples", values, is_large)


def decoding(config: Mapping[str, Any], split: str) -> Job:
    """Return the job that decodes the images of a run's data set. Raises ValueError for an unreadable data set."""
    dataset, form = str(config.get("dataset")), form_of(config)
    values = {"dataset": dataset, "split": split, "root": config.get("root")}
    if datasets.is_files(dataset) and form.size is not None:
        values |= {"size": form.size, "resize": form.resize}
    path = datasets.made_path(dataset, split, form)
    return _job(results.key("decoding", values), path, "decoding", values, is_long=True)


def _job(name: str, result_path: Path, kind: str, values: Mapping[str, object], is_long: bool = False) -> Job:
    key = "_" + re.sub(r"[^\w.~-]", "-", name)
    return Job(key, result_path, ("analyze", kind, json.dumps(values)), kind, values, is_long)


def _is_large(run: Run) -> bool:
    return int(run.manifest.get("n_train") or 0) > LARGE
