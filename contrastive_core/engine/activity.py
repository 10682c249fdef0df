"""Everything at work, waiting and failed, of all pages and tabs.

Runs and tasks are read from the records of their processes, each file again only when it has
changed: the app asks every second. A dismissed failure is marked in its record, which the next
start replaces; the log stays. Questions are those that this process asked the worker.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

from contrastive_core.engine import client, process, queue, queue_files, training
from contrastive_core.engine.client import STOPPED, Asked
from contrastive_core.engine.process import ProcessRecord
from contrastive_core.engine.task import Task
from contrastive_core.engine.worker_process import KILLED
from contrastive_core.messages import N_
from contrastive_core.progress import Progress, first_progress, read_progress
from contrastive_core.records import runs
from contrastive_core.storage.json_files import write_json

__all__ = ["Activity", "AtWork", "Failed", "Waits", "activity", "dismiss"]

# Questions of a page while something is typed: the error is shown beside the field.
ASKED_WHILE_TYPING = {"views", "folder", "look", "advice_plan", "training_plan", "catalog"}
SOONEST = 3.0  # seconds of work before the time that is left is told
ENDING, STARTING = Progress("ending", 1.0), Progress("starting", None)

_records: dict[Path, tuple[int, ProcessRecord | None]] = {}
_outcomes: dict[str, tuple[tuple[float, int], str | None]] = {}
_seen: set[tuple[str, float]] = set()  # processes that were at work when it was asked


@dataclass(frozen=True)
class AtWork:
    """`run` is its run's name, "" for what is no training; `seconds_left` None where not known."""

    key: str
    label: str
    run: str
    progress: Progress
    seconds_left: float | None = None


@dataclass(frozen=True)
class Waits:
    """A run that waits behind `ahead` others; `why` it is held back where it does not wait."""

    run: str
    ahead: int
    why: str = ""


@dataclass(frozen=True)
class Failed:
    """What ended without a result, and why."""

    key: str
    label: str
    run: str
    why: str


@dataclass(frozen=True)
class Activity:
    """All of it; false where there is nothing to be said."""

    at_work: tuple[AtWork, ...] = ()
    waiting: tuple[Waits, ...] = ()
    failed: tuple[Failed, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.at_work or self.waiting or self.failed)

    @property
    def is_live(self) -> bool:
        """Whether it changes without anybody's doing."""
        return bool(self.at_work) or any(not waits.why for waits in self.waiting)


def activity() -> Activity:
    """As it stands now; the oldest first."""
    at_work: list[AtWork] = []
    failed: list[Failed] = []
    for record in sorted(_all_records(), key=lambda r: r["time"]):
        if record["key"] == queue.RUNNER or not _words(record):
            continue
        if process.pid_of(record["key"]):
            _seen.add((record["key"], record["time"]))
            at_work.append(_at_work(record))
        elif not record.get("dismissed") and (why := _failure(record)):
            failed.append(Failed(record["key"], _label(record), _run_of(record), why))
    asked_questions = client.asked_questions()
    at_work += [_question_at_work(asked) for asked in asked_questions if asked.question.is_running()]
    failed += [Failed(a.question.key, a.label, "", why) for a in asked_questions if (why := _question_failure(a))]
    recorded = {work.run for work in at_work}
    for run in training.working():  # begun on the command line
        if run.name not in recorded:
            progress = queue.progress_of(run.name) or ENDING
            at_work.append(AtWork(run.name, run.name, run.name, progress))
    return Activity(tuple(at_work), _waiting(at_work), tuple(failed))


def dismiss(failure: Failed) -> None:
    """Say no more of a failure, until it fails anew. Its log is kept."""
    for asked in client.asked_questions():
        asked.is_dismissed |= asked.question.key == failure.key
    if (record := process.record_of(failure.key)) and not process.pid_of(failure.key):
        with contextlib.suppress(OSError):
            write_json(process.folder() / f"{failure.key}.json", {**record, "dismissed": True})


def _waiting(at_work: list[AtWork]) -> tuple[Waits, ...]:
    """Runs in the queue, each behind those of its device."""
    ahead: dict[str, int] = {}
    for device in _busy(at_work):
        ahead[device] = ahead.get(device, 0) + 1
    begun, waiting = {work.run for work in at_work}, []
    for job in queue.queue():
        if job.name in begun:
            continue
        why = job.blocked_reason()
        waiting.append(Waits(job.name, ahead.get(job.device, 0), why))
        ahead[job.device] = ahead.get(job.device, 0) + (not why)
    return tuple(waiting)


def _busy(at_work: list[AtWork]) -> list[str]:
    """The device of each training that is at work, or about to be."""
    devices = {
        run.name: queue_files.device_of(["--device", str(run.config.get("device") or "auto")])
        for run in training.working()
    }
    for work in at_work:
        if work.run and work.run not in devices:
            words = _words(process.record_of(work.key) or {})
            devices[work.run] = queue_files.device_of(words)
    return list(devices.values())


# --- records -----------------------------------------------------------------------------------


def _all_records() -> list[ProcessRecord]:
    """What is kept of every process; a file is read again when it has changed. Every tab asks, each
    in a thread of its own: what is known is replaced, never changed."""
    global _records
    known, now = _records, {}
    for path in process.folder().glob("*.json"):
        with contextlib.suppress(OSError):
            changed = path.stat().st_mtime_ns
            before = known.get(path)
            same = before is not None and before[0] == changed
            record = before[1] if same and before else process.record_of(path.stem)
            now[path] = (changed, record)
    _records = now
    return [{**r, "key": p.stem} for p, (_, r) in now.items() if r is not None]


def _words(record: ProcessRecord) -> list[str]:
    words = record.get("command")
    return [str(word) for word in words] if isinstance(words, list) else []


def _run_of(record: ProcessRecord) -> str:
    if _words(record)[0] != "train":
        return ""
    return str(record["key"]).partition(training.EARLIER)[0]


def _label(record: ProcessRecord) -> str:
    label = record.get("label")
    named = label if isinstance(label, str) else ""  # a message keeps its template
    return _run_of(record) or named or " ".join(_words(record)[:2])


def _at_work(record: ProcessRecord) -> AtWork:
    path = process.progress_path(record["key"])
    now = read_progress(path) or STARTING
    first = first_progress(path)  # a later stage of a task has a fraction of its own
    is_whole = _run_of(record) or (first is not None and first.stage == now.stage)
    left = _seconds_left(record["time"], first, now) if is_whole else None
    return AtWork(record["key"], _label(record), _run_of(record), now, left)


def _question_at_work(asked: Asked) -> AtWork:
    first, now = asked.call.first, asked.progress
    is_first_stage = first is not None and first.stage == now.stage
    left = _seconds_left(asked.time, first, now) if is_first_stage else None
    return AtWork(asked.question.key, asked.label, "", now, left)


def _question_failure(asked: Asked) -> str | None:
    """Why the worker did not answer; None for a question that a person stopped or is typing."""
    if asked.is_dismissed or asked.question.kind in ASKED_WHILE_TYPING or asked.failure == STOPPED:
        return None
    return asked.failure


def _seconds_left(began: float, first: Progress | None, now: Progress) -> float | None:
    """The time left at the rate so far; None before any progress."""
    if first is None or now.fraction is None:
        return None
    done, seconds = now.fraction - (first.fraction or 0.0), time.time() - began
    return (1.0 - now.fraction) * seconds / done if done > 0 and seconds > SOONEST else None


def _failure(record: ProcessRecord) -> str | None:
    """Why a process that has ended failed; kept for as long as neither its record nor its result
    changes. A result that was there, and was removed since, is no failure."""
    key, result = str(record["key"]), _result_path(record)
    if result is None:
        return None
    try:
        changed = result.stat().st_mtime_ns
    except OSError:
        changed = 0
    state, (before, why) = (float(record["time"]), changed), _outcomes.get(key, ((0.0, 0), None))
    if before != state and (_run_of(record) or not (before[0] == state[0] and before[1])):
        why = _reason(record, result)
        _outcomes[key] = (state, why)
    return why


def _result_path(record: ProcessRecord) -> Path | None:
    """The file that it was to leave; None for what is not told of here."""
    if _run_of(record):
        return training.task_of(record["key"]).result_path
    return Path(record["result"]) if isinstance(record.get("result"), str) else None


def _reason(record: ProcessRecord, result: Path) -> str | None:
    """None for what has its result, and for what a person has stopped."""
    if record.get("stopped"):
        return None
    if why := Task(record["key"], tuple(_words(record)), result).failure():
        is_known = why != KILLED or _run_of(record) or (record["key"], record["time"]) in _seen
        return why if is_known else None  # its result may have been there, and be removed
    if not _run_of(record):
        return None
    try:
        status = runs.load(_run_of(record)).status()
    except (ValueError, OSError):
        return None  # renamed or deleted since
    reason = status.get("reason") or N_("failed")
    return reason if status["status"] == "failed" else None
