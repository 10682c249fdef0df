"""Runs that wait for their turn: one at a time on each device, whoever closes what. Torch-free.

A waiting run is a file in `.jobs/queue`: a kill loses none, and a damaged one hides no other. Who adds a run starts it
when its device is free; else a small process of its own, which outlives the app, starts it later (`python -m
contrastive_core queue`). A file is removed only after its training was started, and a run's folder can be made only
once: killed in between, nothing is lost and nothing is trained twice.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence

from contrastive_core.engine import importing, process, training
from contrastive_core.engine.client import STARTING
from contrastive_core.engine.queue_files import Waiting, add, changing, device_of, files, folder, queue, waiting_names
from contrastive_core.engine.queue_files import broken as broken  # for pages
from contrastive_core.errors import Locked
from contrastive_core.messages import N_, message
from contrastive_core.paths import SHIPPED, runs_home
from contrastive_core.progress import Progress, read_progress
from contrastive_core.records import runs
from contrastive_core.storage.lock import lock, lock_holder

RUNNER = "queue-runner"  # its log's name
POLL_SECONDS = 0.5


def enqueue(name: str, arguments: Sequence[str]) -> None:
    """Train a new run as soon as its device is free.
    Args: arguments: of the command line after `train`, without `--run`. Raises: BadName; FileExistsError when the
    name is taken, also by a run that waits."""
    with _taking(name):
        add(name, arguments, time.time())
    go_on()


def start_now(name: str, arguments: Sequence[str]) -> None:
    """Start a new run now, even if other runs are active. Otherwise like `enqueue`."""
    with _taking(name):
        training.start(name, arguments)


@contextlib.contextmanager
def _taking(name: str) -> Iterator[None]:
    """Change the queue, for a new run of this name. Raises BadName; FileExistsError."""
    runs.checked_name(name)
    with changing():
        if training.is_taken(name) or name in waiting_names():
            raise FileExistsError(message("there is a run {name} already; choose another name", name=f"{name!r}"))
        yield


def taken_names() -> set[str]:
    """Names that a run has, waits under, begins or is imported under, or could not start under."""
    folders = {path.name for home in (runs_home(), SHIPPED) for path in home.glob("*")}
    return folders | waiting_names() | {*training.starting(), *training.failures(), *importing.at_work()}


def free_name(stem: str) -> str:
    """`stem`, or it with the first number from 2 on that makes it free."""
    return runs.free_name(stem, taken_names())


def resume(name: str) -> None:
    """Go on with a stopped or failed run as soon as its device is free.
    Raises: NoSuchRun; ValueError when it is shipped, done, at work, or waits already."""
    training.check_resumable(name)  # this may wait for a process that ends; others need not
    with changing():
        training.check_resumable(name)
        if name in waiting_names():
            raise ValueError(message("{name} is already queued", name=name))
        add(name, _resuming(name), time.time())
    go_on()


def enqueue_group(group: str, trainings: Sequence[tuple[str, Sequence[str]]], hours: float | None = None) -> list[str]:
    """Let many runs wait in this order: new ones, and those that can go on. Returns their names.
    Args: trainings: name and arguments of each; hours: after which no more of them is started. What is done, at work
    or waits already is left out."""
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
        for job in before:  # asked for before: its hours begin anew; last, so that none is lost
            job.path.unlink(missing_ok=True)
    go_on()
    return added


def _resuming(name: str) -> list[str]:
    run = runs.load(name)
    processes = min(int(run.manifest.get("processes") or 1), training.gpus())
    many = ["--processes", str(processes)] if processes > 1 else []
    return ["--resume", "--device", str(run.config.get("device") or "auto"), *many]


def remove(name: str) -> None:
    """Take a waiting run out of the queue; one that is not in it is left alone."""
    with changing():
        for job in queue():
            if job.name == name:
                job.path.unlink(missing_ok=True)


def go_on() -> None:
    """Start what can start now, and see to it that a process starts the rest. Any page may call it at any time."""
    if not files():
        return
    with contextlib.suppress(Locked):
        start_due()
    if _has_due() and not (process.pid_of(RUNNER) or lock_holder(folder() / "runner.lock")):
        process.spawn(RUNNER, ["queue"])


def start_due() -> list[str]:
    """Start the first waiting run of every device on which nothing works. Returns their names."""
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


def work(report: Callable[[str], None] = lambda text: None) -> None:
    """Start waiting runs until none is left to start. One process at a time does this: another returns at once."""
    while _has_due():  # again: more came as the lock went
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
    """Whether the run was started already, by a process that was killed before it could say so."""
    if process.pid_of(job.name):
        return True
    try:
        run = runs.load(job.name)
    except (ValueError, OSError):
        return job.resumes  # renamed or deleted since: there is nothing to go on with
    return not job.resumes or run.is_alive() or (run.status().get("updated") or 0) > job.asked_at


def busy_devices() -> list[str]:
    """Return the device of each active or starting training."""
    devices = {run.name: device_of(["--device", str(run.config.get("device") or "auto")]) for run in training.working()}
    for record in process.records():
        if record["command"][:1] == ["train"] and record["key"] not in devices and process.pid_of(record["key"]):
            devices[record["key"]] = device_of(record["command"])
    return list(devices.values())


def wait_for_device(device: str) -> None:
    """Wait until no training uses the device: for a program that trains in its own process."""
    while device_of(["--device", device]) in busy_devices():
        time.sleep(POLL_SECONDS)


def progress_of(name: str) -> Progress | None:
    """Return the progress of a queued, starting or running training; None for others."""
    try:
        status = training.status_of(runs.load(name))
    except (ValueError, OSError):
        status = {}
    if status.get("status") == "starting" or name in training.starting():
        return training.task_of(name).progress() or STARTING
    if status.get("status") == "running":
        epoch, epochs = int(status.get("epoch") or 0), int(status.get("epochs") or 1)
        share = min(1.0, epoch / max(1, epochs))
        told = read_progress(process.progress_path(name))  # may be that of an earlier start
        if told is not None and (told.fraction or 0.0) > share:
            return told
        return Progress(message("epoch {epoch} of {epochs}", epoch=min(epoch + 1, epochs), epochs=epochs), share)
    return Progress(N_("queued"), None) if name in waiting_names() else None
