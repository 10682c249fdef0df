"""Tasks, and trainings as such: which work, which begin, which could not, and how to make one again.

A task is one command in a run process, and the file that it leaves: trainings, imports, reports, the adviser and
everything else that takes more than a few minutes. A page starts one, shows its progress and its failure, and stops it,
like a question. Torch-free. What waits for its turn is in queue.py.
"""

import contextlib
import itertools
import os
import shlex
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrastive_core.engine import client, process
from contrastive_core.engine.client import STARTING, STOPPED
from contrastive_core.engine.worker_process import KILLED
from contrastive_core.messages import message
from contrastive_core.paths import SHIPPED, runs_home
from contrastive_core.progress import Progress, read_progress
from contrastive_core.records import runs
from contrastive_core.records.run import Run
from contrastive_core.records.run_files import Status
from contrastive_core.records.train_config import settings_of
from contrastive_core.storage.lock import lock, lock_holder

PATIENCE = 10.0  # seconds in which a process that was just stopped may end
EARLIER = "~"  # between a name and the number of an attempt that failed before another was made
START_PATIENCE = 60.0  # seconds to wait for another process that starts a task


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
        with lock(process.folder() / "start.lock", wait=START_PATIENCE):
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
        return message("It failed: {lines}", lines=lines[-1].strip()) if is_known else KILLED

    def stop(self) -> None:
        """End its process; nothing half-made is left."""
        process.terminate(self.key)

    def forget(self) -> None:
        """Remove the record of its process, unless it is running."""
        if not self.is_running():
            process.forget(self.key)


def gpus() -> int:
    """How many NVIDIA GPUs this machine has; asked without torch."""
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


def task_of(name: str, arguments: Sequence[str] = ()) -> Task:
    """The training of a run; its result is the run's status, which it writes from its start on.
    Args: arguments: of the command line after `train`, without `--run`."""
    path = runs_home() / name / "status.json"
    return Task(name, ("train", "--run", name, *arguments), path)


def start(name: str, arguments: Sequence[str], **about: Any) -> None:
    """Start a training; the reason why an earlier one of this name could not start is kept."""
    if failure(name) is not None:
        _set_aside(name)
    task_of(name, arguments).start(**about)


def stop(name: str) -> None:
    """Ask a run's process to save and end. A run that is not at work here is left alone. Raises
    ValueError for a recording, whose process is somebody else's training."""
    if (runs_home() / name).exists() and runs.load(name).is_recording:
        raise ValueError(message("{name} is a recording: it stops when its training loop stops", name=name))
    if process.pid_of(name):
        process.terminate(name)
    elif holder := lock_holder(runs_home() / name / "lock"):
        os.kill(holder, signal.SIGTERM)


def is_taken(name: str) -> bool:
    """Whether a run of that name exists, or its process is about to make it."""
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
    """Whether a process works on a run, or is about to. One that has had its last word gets a moment to end."""
    end = time.monotonic() + PATIENCE
    while process.pid_of(run.name) and not run.is_claimed() and not _is_silent(run) and time.monotonic() < end:
        time.sleep(0.1)
    return run.is_claimed() or process.pid_of(run.name) is not None


def _is_silent(run: Run) -> bool:
    """Whether its process lives, and has not written the run's status since it was started."""
    record = process.record_of(run.name)
    is_older = record is not None and float(run.status().get("updated") or 0.0) <= record["time"]
    return is_older and process.pid_of(run.name) is not None


def status_of(run: Run) -> Status:
    """The run's status; `starting` from the moment its process was started to its first word, and
    while the process that has made the run is not at its first step yet."""
    status = run.status()
    is_made = status["status"] == "queued" and run.is_claimed()
    is_starting = is_made or (status["status"] not in ("running", "done") and _is_silent(run))
    return {**status, "status": "starting", "reason": ""} if is_starting else status


def working() -> list[Run]:
    """Runs that a living process of ours works on; recordings are of somebody else's."""
    return [run for run in runs.list_runs() if not run.is_recording and run.is_alive()]


def starting() -> list[str]:
    """Names whose process has been started and has not had its first word yet."""
    names = []
    for name in filter(process.pid_of, process.keys_of("train")):
        with contextlib.suppress(ValueError, OSError):  # it has made no run yet
            if status_of(runs.load(name))["status"] != "starting":
                continue
        names.append(name)
    return names


def failures() -> dict[str, str]:
    """Trainings that ended before their first word, and why."""
    return {name: why for name in process.keys_of("train") if (why := failure(name)) is not None}


def failure(name: str) -> str | None:
    """Why a training could not start; None while it is well."""
    return task_of(name).failure()


def dismiss(name: str) -> None:
    """Forget a training that could not start."""
    if failure(name) is not None:
        task_of(name).forget()


def _set_aside(name: str) -> None:
    """Keep the record and the log of an attempt that failed under a name of their own."""
    folder = process.folder()
    names = (f"{name}{EARLIER}{number}" for number in itertools.count(1))
    earlier = next(name for name in names if not (folder / f"{name}.json").exists())
    for ending in ("log", "json"):
        os.replace(folder / f"{name}.{ending}", folder / f"{earlier}.{ending}")


def command_of(run: Run, processes: int = 1, machines: int = 1) -> str:
    """The command line that trains this run anew, also with many processes or machines. With more than one, what
    belongs to the first machine (device, threads, bf16) is left out."""
    if processes * machines == 1:
        return f"python -m contrastive_core train {shlex.join(settings_of(run.config))}"
    settings = {k: v for k, v in run.config.items() if k not in ("device", "threads", "amp")}
    begin = f"torchrun --nproc-per-node {processes}"
    if machines > 1:  # the same line on each machine, but for its rank
        begin += f" --nnodes {machines} --node-rank $RANK --master-addr $FIRST --master-port 29500"
    return f"{begin} -m contrastive_core train {shlex.join(settings_of(settings))}"


def damage_of(name: str) -> list[str]:
    """A sentence for each damaged file of a run; nothing is touched. Raises ValueError."""
    return list(client.call("contrastive_core.runs.verify:damage", runs.load(name)))
