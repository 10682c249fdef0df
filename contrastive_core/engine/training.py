"""Trainings and imports as jobs, each in a process under its run's name: which ones run, start or failed to start, and
the command that repeats a run. A training that starts from a run under import waits for it. Torch-free. Queued runs are
in queue.py."""

import contextlib
import os
import shlex
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contrastive_core import runs
from contrastive_core.base.errors import BadSetting, NoSuchRun
from contrastive_core.base.lock import lock_holder
from contrastive_core.base.messages import message
from contrastive_core.base.progress import OnProgress, prefixed
from contrastive_core.base.storage import SHIPPED, runs_home
from contrastive_core.engine import process
from contrastive_core.engine.jobs import Job
from contrastive_core.runs.records import Status
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import settings_of

PATIENCE = 10.0  # seconds that a stopped process may take to end
POLL_SECONDS = 0.5


def gpus() -> int:
    """Return the number of NVIDIA GPUs of this machine, without torch."""
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


def job_of(name: str, arguments: Sequence[str] = ()) -> Job:
    """Return the job that trains a run. Its result is the run's status file, which it writes from the start.
    Args: arguments: of the command line after `train`, without `--run`."""
    return Job(name, runs_home() / name / "status.json", ("train", "--run", name, *arguments))


def start(name: str, arguments: Sequence[str], **about: Any) -> None:
    """Start a training."""
    job_of(name, arguments).start(**about)


def stop(name: str) -> None:
    """Ask a run's process to save and end, if it runs here. Raises ValueError for a recording, whose process is the
    user's own training, and if only a file of the run names the process."""
    run = runs.load(name) if (runs_home() / name).exists() else None
    if run is not None and run.is_recording:
        raise ValueError(message("{name} is a recording: it stops when its training loop stops", name=name))
    if process.pid_of(name):
        process.terminate(name)
    elif holder := lock_holder(runs_home() / name / "lock"):
        os.kill(holder, signal.SIGTERM)
    elif run is not None and run.is_alive():
        raise ValueError(message("{name} was started by another user or on another computer: stop it there", name=name))


def is_taken(name: str) -> bool:
    """Return whether a run of this name exists or a process is about to create it."""
    return any((home / name).exists() for home in (runs_home(), SHIPPED)) or process.pid_of(name) is not None


def check_resumable(name: str) -> None:
    """Raise NoSuchRun for an unknown run, and ValueError for a recording and for a shipped, finished or running run."""
    run = runs.load(name)
    if run.is_recording:
        raise ValueError(message("{name} is a recording: continue its training where you started it", name=name))
    if run.shipped:
        raise ValueError(message("{name} is shipped with the project; clone it to train further", name=name))
    if at_work(run):
        raise ValueError(message("{name} is already running", name=name))
    if run.status()["status"] == "done":
        raise ValueError(message("{name} is done; clone it to train it for longer", name=name))


def at_work(run: Run) -> bool:
    """Return whether a process works on a run, or is about to. A process that has just finished gets time to end."""
    end = time.monotonic() + PATIENCE
    while process.pid_of(run.name) and not run.is_claimed() and not _is_silent(run) and time.monotonic() < end:
        time.sleep(0.1)
    return run.is_claimed() or process.pid_of(run.name) is not None


def _is_silent(run: Run) -> bool:
    """Return whether a run's process is alive and has not written the run's status since its start."""
    record = process.record_of(run.name)
    is_older = record is not None and float(run.status().get("updated") or 0.0) <= record["time"]
    return is_older and process.pid_of(run.name) is not None


def status_of(run: Run) -> Status:
    """Return the run's status; `starting` until the process's first output, or until a new run's first step."""
    status = run.status()
    is_made = status["status"] == "queued" and run.is_claimed()
    is_starting = is_made or (status["status"] not in ("running", "done") and _is_silent(run))
    return {**status, "status": "starting", "reason": ""} if is_starting else status


def working() -> list[Run]:
    """Return the runs that a process of this library is training; recordings belong to other programs."""
    return [run for run in runs.list_runs() if not run.is_recording and run.is_alive()]


def starting() -> list[str]:
    """Return the names of runs whose process has started but has not written yet."""
    names = []
    for name in process_names("train"):
        with contextlib.suppress(ValueError, OSError):  # it has made no run yet
            if status_of(runs.load(name))["status"] != "starting":
                continue
        names.append(name)
    return names


def process_names(command: str) -> list[str]:
    """Return the names of the runs on which a process of this command, "train" or "import", works."""
    records = (record for record in process.records() if record["command"][:1] == [command])
    return [record["key"] for record in records if process.pid_in(record)]


def failure(name: str) -> str | None:
    """Return why a training could not start; None if it started or is starting."""
    return job_of(name).failure()


def command_of(run: Run) -> str:
    """Return the command line that repeats this run."""
    return f"contrastive-lab train {shlex.join(settings_of(run.config))}"


# --- imports ---------------------------------------------------------------------------------------


def check_new(name: str) -> None:
    """Raise BadName; FileExistsError if the name is taken, also by a run that is being created."""
    runs.check_free(name)
    if is_taken(name):
        raise FileExistsError(message("a run {name} is being created; choose another name", name=f"{name!r}"))


def start_import(name: str, arguments: Sequence[str]) -> None:
    """Start an import as a run of this name, in its own process.
    Args: arguments: of the command line after `import`, without `--run`. Raises: the errors of `check_new`."""
    check_new(name)
    _import(name, ("import", *arguments, "--run", name)).start(message("Importing {name}", name=name))


def import_of(name: str) -> Job | None:
    """Return the last import started under a name; None if there is none."""
    words = record["command"] if (record := process.record_of(name)) else []
    return _import(name, tuple(words)) if words[:1] == ["import"] else None


def wait_for_import(name: str, on_progress: OnProgress) -> None:
    """Wait while a run is being imported. Raises: BadSetting with the reason if the import failed."""
    job = import_of(name)
    while job and (now := job.progress()):
        prefixed(on_progress, name)(now.stage, now.fraction)
        time.sleep(POLL_SECONDS)
    try:
        runs.load(name)
    except NoSuchRun:
        if job and (why := job.failure()):
            raise BadSetting("the run to start from, {name}, was not imported: {why}", name=name, why=why) from None
        raise


def _import(name: str, arguments: tuple[str, ...]) -> Job:
    """Return the job of an import. Its result file, the run's weights, is written last except for the status."""
    return Job(name, runs_home() / name / "weights.safetensors", arguments)
