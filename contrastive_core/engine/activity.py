"""Running, queued and failed work of all pages and tabs, from the records of processes and this process's requests to
the worker. A dismissed failure is marked in its record, which the next start replaces; the log stays."""

import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from contrastive_core import runs
from contrastive_core.base.messages import N_
from contrastive_core.base.progress import Progress, first_progress, read_progress
from contrastive_core.engine import jobs, process, queue, training
from contrastive_core.engine.client import KILLED
from contrastive_core.engine.jobs import STARTING, STOPPED, Job
from contrastive_core.engine.process import ProcessRecord
from contrastive_core.runs.records import Status

# Kinds of jobs that a page asks for while something is typed: the error is shown beside the field.
ASKED_WHILE_TYPING = {"views", "folder", "look", "advice_plan", "catalog"}
SOONEST = 3.0  # seconds of work before the remaining time is shown
ENDING = Progress("ending", 1.0)

_seen: set[tuple[str, float]] = set()  # processes that this process has seen running


@dataclass(frozen=True)
class AtWork:
    """A running task. `run` is the name of its run, "" if it is not a training; `seconds_left` is None if unknown."""

    key: str
    label: str
    run: str
    progress: Progress
    seconds_left: float | None = None


@dataclass(frozen=True)
class Waits:
    """A queued run behind `ahead` others. `why` is the reason if it is held back, else ""."""

    run: str
    ahead: int
    why: str = ""


@dataclass(frozen=True)
class Failed:
    """A task or run that ended without a result, and the reason."""

    key: str
    label: str
    run: str
    why: str


@dataclass(frozen=True)
class Activity:
    """Running, queued and failed work; falsy if there is none."""

    at_work: tuple[AtWork, ...] = ()
    waiting: tuple[Waits, ...] = ()
    failed: tuple[Failed, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.at_work or self.waiting or self.failed)

    @property
    def is_live(self) -> bool:
        """Whether any of it runs or is queued, so that it changes by itself."""
        return bool(self.at_work) or any(not waits.why for waits in self.waiting)


def activity() -> Activity:
    """Return the work that is running, queued or failed now, the oldest first."""
    at_work: list[AtWork] = []
    failed: list[Failed] = []
    for record in sorted(process.records(), key=lambda r: r["time"]):
        if record["key"] == queue.RUNNER or not record["command"]:
            continue
        if process.pid_of(record["key"]):
            _seen.add((record["key"], record["time"]))
            at_work.append(_at_work(record))
        elif not record.get("dismissed") and (why := _failure(record)):
            failed.append(Failed(record["key"], _label(record), _run_of(record), why))
    for asked in jobs.asked_of_worker():
        key, is_typed = asked.job.key, asked.job.kind in ASKED_WHILE_TYPING
        if not asked.call.outcome.done():
            work = AtWork(key, asked.label, "", asked.progress)
            at_work.append(_in_first_stage(work, asked.time, asked.call.first))
        elif not asked.is_dismissed and not is_typed and (why := asked.failure) and why != STOPPED:
            failed.append(Failed(key, asked.label, "", why))
    recorded = {work.run for work in at_work}
    for run in training.working():  # started on the command line
        if run.name not in recorded:
            at_work.append(AtWork(run.name, run.name, run.name, queue.progress_of(run.name) or ENDING))
    return Activity(tuple(at_work), _waiting({work.run for work in at_work}), tuple(failed))


def dismiss(failure: Failed) -> None:
    """Hide a failure until it occurs again. Its log is kept."""
    for asked in jobs.asked_of_worker():
        asked.is_dismissed |= asked.job.key == failure.key
    if not process.pid_of(failure.key):
        process.mark(failure.key, dismissed=True)


def _waiting(begun: set[str]) -> tuple[Waits, ...]:
    """Return the queued runs that have not started, each with the number of runs ahead on its device."""
    ahead, waiting = Counter(queue.busy_devices()), []
    for job in queue.queue():
        if job.name not in begun:
            why = job.blocked_reason()
            waiting.append(Waits(job.name, ahead[job.device], why))
            ahead[job.device] += not why
    return tuple(waiting)


def _run_of(record: ProcessRecord) -> str:
    return record["key"].partition(training.EARLIER)[0] if record["command"][0] == "train" else ""


def _label(record: ProcessRecord) -> str:
    label = record.get("label")
    named = label if isinstance(label, str) else ""  # a message keeps its template
    return _run_of(record) or named or " ".join(record["command"][:2])


def _at_work(record: ProcessRecord) -> AtWork:
    path = process.progress_path(record["key"])
    work = AtWork(record["key"], _label(record), _run_of(record), read_progress(path) or STARTING)
    if work.run:  # its epochs are counted as one stage, after starting and decoding
        return _with_time_left(work, work.progress.since, work.progress.begun)
    return _in_first_stage(work, record["time"], first_progress(path))


def _in_first_stage(work: AtWork, began: float, first: Progress | None) -> AtWork:
    """Add the time left in the first stage; later stages count their fractions from 0."""
    if first is None or first.stage != work.progress.stage:
        return work
    return _with_time_left(work, began, first.fraction or 0.0)


def _with_time_left(work: AtWork, began: float, fraction: float) -> AtWork:
    """Add the time left, from the rate since `began` (s since 1970), when `fraction` was done."""
    now = work.progress
    if now.fraction is None:
        return work
    done, seconds = now.fraction - fraction, time.time() - began
    if done <= 0 or seconds <= SOONEST:
        return work
    return replace(work, seconds_left=(1.0 - now.fraction) * seconds / done)


def _failure(record: ProcessRecord) -> str | None:
    """Return why an ended process failed; None if it has a result or a user stopped it. A success is marked, because
    its result may be removed later without being a failure."""
    key, run = record["key"], _run_of(record)
    result = training.job_of(key).result_path if run else record.get("result")
    if record.get("stopped") or not isinstance(result, (str, Path)):
        return None
    if why := Job(key, Path(result)).failure():
        is_known = why != KILLED or run or (key, record["time"]) in _seen
        return why if is_known else None  # its result may have been removed
    try:
        status: Status = runs.load(run).status() if run else {"status": "done"}
    except (ValueError, OSError):
        return None  # renamed or deleted since
    if status["status"] == "done":
        process.mark(key, dismissed=True)
    return status.get("reason") or N_("failed") if status["status"] == "failed" else None
