"""Trainings and imports as jobs, each in a process under its run's name: which work, which begin, which could not, and
how to make one again. A training that starts from a run in the making waits for its import. Torch-free. What waits for
its turn is in queue.py."""

import contextlib
import itertools
import os
import shlex
import signal
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from contrastive_core import runs
from contrastive_core.base.errors import BadSetting, NoSuchRun
from contrastive_core.base.lock import lock_holder
from contrastive_core.base.messages import message
from contrastive_core.base.paths import SHIPPED, runs_home
from contrastive_core.base.progress import OnProgress, prefixed
from contrastive_core.engine import process
from contrastive_core.engine.jobs import Job
from contrastive_core.runs.run import Run, Status
from contrastive_core.runs.train_config import settings_of

PATIENCE = 10.0  # seconds in which a process that was just stopped may end
POLL_SECONDS = 0.5
EARLIER = "~"  # between a name and the number of an attempt that failed before another was made


def gpus() -> int:
    """Return how many NVIDIA GPUs this machine has; asked without torch."""
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


def job_of(name: str, arguments: Sequence[str] = ()) -> Job:
    """The training of a run; its result is the run's status, which it writes from its start on.
    Args: arguments: of the command line after `train`, without `--run`."""
    return Job(name, runs_home() / name / "status.json", ("train", "--run", name, *arguments))


def start(name: str, arguments: Sequence[str], **about: Any) -> None:
    """Start a training; the record and the log of an earlier one of this name that could not start are kept."""
    if failure(name) is not None:
        folder = process.folder()
        names = (f"{name}{EARLIER}{number}" for number in itertools.count(1))
        earlier = next(name for name in names if not (folder / f"{name}.json").exists())
        for ending in ("log", "json"):
            os.replace(folder / f"{name}.{ending}", folder / f"{earlier}.{ending}")
    job_of(name, arguments).start(**about)


def stop(name: str) -> None:
    """Ask a run's process to save and end. A run that is not at work here is left alone. Raises ValueError for a
    recording, whose process is somebody else's training, and where only a file of the run says which process it is."""
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
    """Return whether a run of that name exists, or its process is about to make it."""
    return any((home / name).exists() for home in (runs_home(), SHIPPED)) or process.pid_of(name) is not None


def check_resumable(name: str) -> None:
    """Raises: NoSuchRun; ValueError when the run is shipped, done or at work."""
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
    """Return whether a process works on a run, or is about to. One that has had its last word gets a moment to end."""
    end = time.monotonic() + PATIENCE
    while process.pid_of(run.name) and not run.is_claimed() and not _is_silent(run) and time.monotonic() < end:
        time.sleep(0.1)
    return run.is_claimed() or process.pid_of(run.name) is not None


def _is_silent(run: Run) -> bool:
    """Return whether its process lives, and has not written the run's status since it was started."""
    record = process.record_of(run.name)
    is_older = record is not None and float(run.status().get("updated") or 0.0) <= record["time"]
    return is_older and process.pid_of(run.name) is not None


def status_of(run: Run) -> Status:
    """Return the run's status. It is `starting` from the start of its process to its first output, and until the
    process that created the run reaches its first step."""
    status = run.status()
    is_made = status["status"] == "queued" and run.is_claimed()
    is_starting = is_made or (status["status"] not in ("running", "done") and _is_silent(run))
    return {**status, "status": "starting", "reason": ""} if is_starting else status


def working() -> list[Run]:
    """Runs that a living process of ours works on; recordings are of somebody else's."""
    return [run for run in runs.list_runs() if not run.is_recording and run.is_alive()]


def starting() -> list[str]:
    """Names of runs whose process has started and has not written yet."""
    names = []
    for name in filter(process.pid_of, process.keys_of("train")):
        with contextlib.suppress(ValueError, OSError):  # it has made no run yet
            if status_of(runs.load(name))["status"] != "starting":
                continue
        names.append(name)
    return names


def failures() -> dict[str, str]:
    """Trainings that ended before they wrote anything, with the reason."""
    return {name: why for name in process.keys_of("train") if (why := failure(name)) is not None}


def failure(name: str) -> str | None:
    """Return the reason why a training could not start; None while it is well."""
    return job_of(name).failure()


def dismiss(name: str) -> None:
    """Forget a training that could not start."""
    if failure(name) is not None:
        job_of(name).forget()


def command_of(run: Run, processes: int = 1, machines: int = 1) -> str:
    """The command line that trains this run anew, also with many processes or machines. With more than one, what
    belongs to the first machine (device, threads, bf16) is left out."""
    if processes * machines == 1:
        return f"contrastive-lab train {shlex.join(settings_of(run.config))}"
    settings = settings_of({k: v for k, v in run.config.items() if k not in ("device", "threads", "amp")})
    if machines == 1:
        return f"contrastive-lab train --processes {processes} {shlex.join(settings)}"
    begin = f"torchrun --nproc-per-node {processes} --nnodes {machines} --node-rank $RANK"  # the rank of the machine
    begin += " --master-addr $FIRST --master-port 29500"
    return f"{begin} -m contrastive_core train {shlex.join(settings)}"


# --- imports ---------------------------------------------------------------------------------------


def start_import(name: str, arguments: Sequence[str]) -> None:
    """Import as a run of this name, in a process of its own.
    Args: arguments: of the command line after `import`, without `--run`. Raises: BadName; FileExistsError when the
    name is taken, also by what is about to be a run."""
    runs.check_free(name)
    if is_taken(name):
        raise FileExistsError(message("a run {name} is being created; choose another name", name=f"{name!r}"))
    _import(name, ("import", *arguments, "--run", name)).start(message("Importing {name}", name=name))


def import_of(name: str) -> Job | None:
    """The import that was begun last under a name; None where none was."""
    words = record["command"] if (record := process.record_of(name)) else []
    return _import(name, tuple(words)) if words[:1] == ["import"] else None


def importing() -> list[str]:
    """The names of the runs that imports are making."""
    return [name for name in process.keys_of("import") if process.pid_of(name)]


def wait_for_import(name: str, on_progress: OnProgress) -> None:
    """Wait while a run is being made by an import. Raises: BadSetting where it did not come about, with the reason."""
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


def import_waited_for(training_name: str) -> Job | None:
    """Return the running import that the training of that name starts from, or None."""
    words = record["command"] if (record := process.record_of(training_name)) else []
    starts = [b for a, b in pairwise(words) if a == "--start"]
    job = import_of(starts[-1]) if starts else None
    return job if job and job.is_running() else None


def _import(name: str, arguments: tuple[str, ...]) -> Job:
    """Its result, the run's weights, is the last but the run's status."""
    return Job(name, runs_home() / name / "weights.safetensors", arguments)
