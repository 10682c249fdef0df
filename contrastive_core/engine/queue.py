"""The queue of runs: one runs at a time on each device, even if pages or the app are closed. Torch-free.

A queued run is a file below the user's data home, so a kill loses none and a damaged file hides no other. Adding a run
starts it if its device is free; otherwise a small process, which outlives the app, starts it later (`python
-m contrastive_core queue`). A file is removed only after its training has started, and a run's folder can be created
only once. So a kill in between loses nothing and trains nothing twice."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from contrastive_core import runs
from contrastive_core.base import json_files
from contrastive_core.base.errors import BadName, Damaged, Locked
from contrastive_core.base.json_files import fields, list_of, number, optional, text
from contrastive_core.base.lock import lock, lock_holder
from contrastive_core.base.messages import N_, message
from contrastive_core.base.progress import STARTING, Progress, read_progress
from contrastive_core.base.storage import SHIPPED, runs_home
from contrastive_core.engine import process, training

RUNNER = "_queue-runner"  # the key of its process
POLL_SECONDS = 0.5
PATIENCE = 20.0  # seconds to wait for another process that changes the queue
FILE = fields(
    {"name": text, "arguments": list_of(text), "asked": number()}, {"group": text, "hours": optional(number())}
)


@dataclass(frozen=True)
class Waiting:
    """A run in the queue. `arguments` follow `train`; `hours` is the time budget of its group, the cells of a sweep."""

    path: Path
    name: str
    arguments: tuple[str, ...]
    asked_at: float
    group: str = ""
    hours: float | None = None

    @property
    def resumes(self) -> bool:
        return "--resume" in self.arguments

    @property
    def device(self) -> str:
        return device_of(self.arguments)

    def blocked_reason(self) -> str:
        """Return why it is not started although its device is free; "" if it can start."""
        if self.hours is None:
            return ""
        spent, now = 0.0, time.time()  # seconds of the started runs of its group
        for record in process.records():
            if self.group and (record.get("group"), record.get("asked")) == (self.group, self.asked_at):
                last = record["time"]
                with contextlib.suppress(ValueError, OSError):
                    last = float(runs.load(record["key"]).status().get("updated") or last)
                spent += max(0.0, (now if process.pid_in(record) else min(now, last)) - record["time"])
        if spent < 3600 * self.hours:
            return ""
        return message("the budget of {hours} h is used up; start the sweep again to continue", hours=f"{self.hours:g}")


def queue() -> list[Waiting]:
    """Return the queued runs, the oldest first. Damaged files are left out; `broken` describes them."""
    return [job for job in files() if isinstance(job, Waiting)]


def waiting_names() -> set[str]:
    """Return the names of queued runs."""
    return {job.name for job in queue()}


def broken() -> list[str]:
    """Return a sentence for each unreadable file of the queue."""
    return [str(job) for job in files() if isinstance(job, Exception)]


def device_of(arguments: Sequence[str]) -> str:
    """Return the device of a training with these arguments, guessed without torch."""
    devices = [b for a, b in pairwise(arguments) if a == "--device"]
    devices += [a.removeprefix("--device=") for a in arguments if a.startswith("--device=")]
    name = devices[-1] if devices else "auto"
    if name == "auto":
        name = "cuda" if Path("/dev/nvidia0").exists() else "cpu"
    return "cuda:0" if name == "cuda" else name


def folder() -> Path:
    """Return the folder of queued runs."""
    return process.folder() / "queue"


@contextlib.contextmanager
def changing() -> Iterator[None]:
    """Context that lets only one process change the queue. Raises Locked."""
    with lock(folder() / "lock", wait=PATIENCE):
        yield


def add(name: str, arguments: Sequence[str], asked_at: float, group: str = "", hours: float | None = None) -> None:
    """Append a run to the queue."""
    number = max([int(p.stem) for p in _paths()], default=0) + 1
    job = {"name": name, "arguments": list(arguments), "asked": asked_at, "group": group, "hours": hours}
    json_files.write_json(folder() / f"{number:06d}.json", job)


def files() -> list[Waiting | Exception]:
    """Return the queued run of each file in order, or the reason why it cannot be read."""
    entries: list[Waiting | Exception] = []
    for path in _paths():
        try:
            held = json_files.read_object(path, FILE)
            name, arguments = runs.checked_name(held["name"]), tuple(held["arguments"])
            entries.append(Waiting(path, name, arguments, held["asked"], held.get("group") or "", held.get("hours")))
        except FileNotFoundError:  # started by another process since the folder was listed
            continue
        except (Damaged, BadName, OSError) as error:
            entries.append(error)
    return entries


def _paths() -> list[Path]:
    return sorted(p for p in folder().glob("*.json") if p.stem.isdigit())


# --- what is done with them ----------------------------------------------------------------------------


def enqueue(name: str, arguments: Sequence[str], at_once: bool = False) -> None:
    """Queue a new run, to start as soon as its device is free.
    Args: arguments: of the command line after `train`, without `--run`; at_once: start it even if other runs are
    active. Raises: BadName; FileExistsError if the name is taken or queued."""
    runs.new_name(name)
    with changing():
        if training.is_taken(name) or name in waiting_names():
            raise FileExistsError(message("there is a run {name} already; choose another name", name=f"{name!r}"))
        if at_once:
            training.start(name, arguments)
        else:
            add(name, arguments, time.time())
    go_on()


def taken_names() -> set[str]:
    """Return all names in use: of runs and queued runs, and of runs that start, are imported or failed to start."""
    folders = {path.name for home in (runs_home(), SHIPPED) for path in home.glob("*")}
    trained = {record["key"] for record in process.records() if record["command"][:1] == ["train"]}
    return folders | waiting_names() | trained | {*training.process_names("import")}


def free_name(stem: str) -> str:
    """Return `stem`, with a number from 2 on if that name is taken."""
    return runs.free_name(stem, taken_names())


def resume(name: str) -> None:
    """Queue a stopped or failed run, to continue as soon as its device is free.
    Raises: NoSuchRun; ValueError if it is shipped, done, running or queued."""
    training.check_resumable(name)  # may wait for an ending process, so check before taking the lock
    with changing():
        training.check_resumable(name)
        if name in waiting_names():
            raise ValueError(message("{name} is already queued", name=name))
        add(name, _resuming(name), time.time())
    go_on()


def enqueue_group(group: str, trainings: Sequence[tuple[str, Sequence[str]]], hours: float | None = None) -> list[str]:
    """Queue many runs in this order, new ones and those that can be resumed. Returns their names.
    Args: trainings: name and arguments of each; hours: time budget, after which no further one starts. Runs that are
    done, running or queued in another group are left out."""
    asked_at, added = time.time(), []
    with changing():
        before = [job for job in queue() if job.group == group]
        others = {job.name for job in queue() if job.group != group}
        for name, arguments in trainings:
            if process.pid_of(name) or name in others:
                continue
            if training.is_taken(name):
                if runs.load(name).status()["status"] not in ("stopped", "failed"):
                    continue
                arguments = _resuming(name)
            add(name, arguments, asked_at, group, hours)
            added.append(name)
        for job in before:  # earlier entries: their hours start again; removed last, so none is lost
            job.path.unlink(missing_ok=True)
    go_on()
    return added


def _resuming(name: str) -> list[str]:
    run = runs.load(name)
    processes = min(int(run.manifest.get("processes") or 1), training.gpus())
    many = ["--processes", str(processes)] if processes > 1 else []
    return ["--resume", "--device", str(run.config.get("device") or "auto"), *many]


def remove(name: str) -> None:
    """Remove a run from the queue, if it is queued."""
    with changing():
        for job in queue():
            if job.name == name:
                job.path.unlink(missing_ok=True)


def go_on() -> None:
    """Start the runs that can start now, and a process that starts the rest. Any page may call it at any time."""
    if not files():
        return
    with contextlib.suppress(Locked):
        start_due()
    if _has_due() and not (process.pid_of(RUNNER) or lock_holder(folder() / "runner.lock")):
        process.spawn(RUNNER, ["queue"])


def start_due() -> list[str]:
    """Start the first queued run of every free device. Returns their names."""
    started = []
    with changing():
        busy = set(busy_devices())
        for job in queue():
            if _has_begun(job):
                job.path.unlink(missing_ok=True)
            elif job.device not in busy and not job.blocked_reason():
                training.start(job.name, job.arguments, group=job.group, asked=job.asked_at)
                job.path.unlink(missing_ok=True)  # last: a kill before this starts nothing twice
                busy.add(job.device)
                started.append(job.name)
    return started


def work(report: Callable[[str], None] = lambda line: None) -> None:
    """Start queued runs until none is left. Only one process does this: a second one returns at once."""
    while _has_due():  # again, because runs may arrive while the lock is released
        try:
            with lock(folder() / "runner.lock"):
                while _has_due():
                    for name in start_due():
                        report(message("{name} has been started", name=name))
                    time.sleep(POLL_SECONDS)
        except Locked:
            return


def _has_due() -> bool:
    return any(not job.blocked_reason() for job in queue())


def _has_begun(job: Waiting) -> bool:
    """Return whether the run was already started by a process that was killed before it removed the file."""
    if process.pid_of(job.name):
        return True
    try:
        run = runs.load(job.name)
    except (ValueError, OSError):
        return job.resumes  # renamed or deleted since: there is nothing to continue
    return not job.resumes or run.is_alive() or (run.status().get("updated") or 0) > job.asked_at


def busy_devices() -> list[str]:
    """Return the device of each active or starting training."""
    devices = {run.name: device_of(["--device", str(run.config.get("device") or "auto")]) for run in training.working()}
    for record in process.records():
        if record["command"][:1] == ["train"] and record["key"] not in devices and process.pid_in(record):
            devices[record["key"]] = device_of(record["command"])
    return list(devices.values())


def wait_for_device(device: str) -> None:
    """Wait until no training uses the device, for a program that trains in its own process."""
    while device_of(["--device", device]) in busy_devices():
        time.sleep(POLL_SECONDS)


def progress_of(name: str) -> Progress | None:
    """Return the progress of a queued, starting or running training; None for others."""
    try:
        status = training.status_of(runs.load(name))
    except (ValueError, OSError):
        status = {}
    if status.get("status") == "starting" or name in training.starting():
        return training.job_of(name).progress() or STARTING
    if status.get("status") == "running":
        epoch, epochs = int(status.get("epoch") or 0), int(status.get("epochs") or 1)
        share = min(1.0, epoch / max(1, epochs))
        told = read_progress(process.progress_path(name))  # may be from an earlier start
        if told is not None and (told.fraction or 0.0) > share:
            return told
        return Progress(message("epoch {epoch} of {epochs}", epoch=min(epoch + 1, epochs), epochs=epochs), share)
    return Progress(N_("queued"), None) if name in waiting_names() else None
