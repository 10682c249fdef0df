"""Running, queued and failed work of all pages and tabs, in a popover of the top bar that is refreshed each second
while a run is active. It is read from the records of processes and this process's requests to the worker."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from contrastive_core import runs
from contrastive_core.advice.plan import is_trial
from contrastive_core.base.progress import ENDING, STARTING, Progress, read_progress
from contrastive_core.engine import jobs, process, queue, training
from contrastive_core.engine.client import KILLED
from contrastive_core.engine.jobs import STOPPED, Job
from contrastive_core.engine.process import ProcessRecord
from contrastive_core.runs.records import Status
from contrastive_lab import format, locale
from contrastive_lab.locale import N_, _
from contrastive_lab.train.watch import watch_next

# Kinds of jobs that a page asks for while something is typed: the error is shown beside the field.
ASKED_WHILE_TYPING = {"views", "folder", "look", "advice_plan"}
SHOWN = 3  # of each kind
LONGEST = 160  # characters of a reason
IDLE = "ticks without activity"

_seen: set[tuple[str, float]] = set()  # processes that this process has seen running


@dataclass(frozen=True)
class Work:
    """One entry. `run` is the name of its run, "" if it is not a training; `progress` is of running work, `ahead` the
    number of runs before a queued one, and `why` the reason of a failure or of a run that is held back."""

    key: str
    label: str
    run: str = ""
    progress: Progress = STARTING
    ahead: int = 0
    why: str = ""


@dataclass
class Activity:
    """Running, queued and failed work, the oldest first."""

    running: list[Work] = field(default_factory=list)
    waiting: list[Work] = field(default_factory=list)
    failed: list[Work] = field(default_factory=list)

    @property
    def is_live(self) -> bool:
        """Whether any of it runs or is queued, so that it changes by itself."""
        return bool(self.running) or any(not work.why for work in self.waiting)


def activity() -> Activity:
    """Return the current activity without the trials of an adviser; the adviser itself is included."""
    now = Activity()
    for record, run in _records():
        key, label = record["key"], run or record.get("label") or " ".join(record["command"][:2])
        if process.pid_in(record):
            _seen.add((key, record["time"]))
            now.running.append(Work(key, label, run, read_progress(process.progress_path(key)) or STARTING))
        elif not record.get("dismissed") and (why := _failure(record, run)):
            now.failed.append(Work(key, label, run, why=why))
    for asked in jobs.asked_of_worker():
        is_shown = not asked.is_dismissed and asked.job.kind not in ASKED_WHILE_TYPING
        if not asked.call.outcome.done():
            now.running.append(Work(asked.job.key, asked.label, progress=asked.call.progress))
        elif is_shown and (why := asked.failure) and why != STOPPED:
            now.failed.append(Work(asked.job.key, asked.label, why=why))
    begun = {work.run for work in now.running}
    for name in (run.name for run in training.working()):  # some were started on the command line
        if name not in begun and not is_trial(name):
            now.running.append(Work(name, name, name, queue.progress_of(name) or ENDING))
    begun, ahead = {work.run for work in now.running}, Counter(queue.busy_devices())
    for job in queue.queue():
        if job.name not in begun:
            why = job.blocked_reason()
            if not is_trial(job.name):
                now.waiting.append(Work(job.name, job.name, job.name, ahead=ahead[job.device], why=why))
            ahead[job.device] += not why
    return now


def _records() -> Iterator[tuple[ProcessRecord, str]]:
    """Yield the record of each process, the oldest first, with the name of its run, "" if it is not a training."""
    for record in sorted(process.records(), key=lambda record: record["time"]):
        run = record["key"] if record["command"][:1] == ["train"] else ""
        if record["key"] != queue.RUNNER and record["command"] and not is_trial(run):
            yield record, run


def _failure(record: ProcessRecord, run: str) -> str | None:
    """Return why an ended process failed; None if it has a result or a user stopped it. A success is marked, because
    its result may be removed later without being a failure."""
    key, result = record["key"], record.get("result")
    if record.get("stopped") or not (run or result):
        return None
    job = training.job_of(key) if run else Job(key, Path(str(result)))
    if why := job.failure():
        is_known = why != KILLED or run or (key, record["time"]) in _seen
        return why if is_known else None  # its result may have been removed
    try:
        status: Status = runs.load(run).status() if run else {"status": "done"}
    except (ValueError, OSError):
        return None  # renamed or deleted since
    if status["status"] == "done":
        process.mark(key, dismissed=True)
    return status.get("reason") or N_("failed") if status["status"] == "failed" else None


def dismiss(*failures: Work) -> None:
    """Hide failures until they occur again. The logs are kept."""
    for failure in failures:
        for asked in jobs.asked_of_worker():
            asked.is_dismissed |= asked.job.key == failure.key
        if not process.pid_of(failure.key):
            process.mark(failure.key, dismissed=True)


# --- drawing ---------------------------------------------------------------------------------------


def strip() -> None:
    """Draw the activity popover. Called after the page, so that it includes work that the page has just started."""
    now = activity()
    st.session_state[IDLE] = 0
    if now.running or now.waiting or now.failed:  # one function for both, so that no click is lost as one follows
        st.fragment(_strip, run_every=1.0 if now.is_live else None)(now.is_live)


def _strip(is_live: bool) -> None:
    """Redraw every second while a run is active; afterwards redraw the page once to stop the refresh."""
    now = activity()
    kinds: list[tuple[list[Work], Callable[[Work], None], str]] = [
        (now.running, _draw_running, _("running")),
        (now.waiting, _draw_waiting, _("waiting")),
        (now.failed, _draw_failed, _("failed")),
    ]
    if counts := " · ".join(f"{len(entries)} {what}" for entries, _draw, what in kinds if entries):
        with st.popover(counts, key="activity-pill", width="content"), st.container(gap="xsmall", key="activity"):
            for entries, draw, _what in kinds:
                for entry in entries[:SHOWN]:
                    draw(entry)
                if (more := len(entries) - SHOWN) > 0:
                    st.caption(_("{count} more on the Runs page").format(count=more))
            if len(now.failed) > 1:
                label = _("Dismiss all {failed}").format(failed=len(now.failed))
                st.button(label, "dismiss-all", on_click=dismiss, args=now.failed)
    st.session_state[IDLE] = 0 if now.is_live else st.session_state.get(IDLE, 0) + 1
    if is_live and st.session_state[IDLE] > 1:
        st.rerun()


def _draw_running(work: Work) -> None:
    share, left = work.progress.fraction, work.progress.seconds_left
    parts = [locale.text(work.progress.stage), f"{100 * share:.0f} %" if share is not None else ""]
    parts.append(_("{left} left").format(left=format.duration(left)) if left is not None else "")
    text = format.plain(" · ".join(filter(None, parts)))
    if work.run:
        _link(work.run, work.run, ":material/play_circle:")
    else:
        text = f"{format.plain(work.label)}: {text}"
    st.progress(share or 0.0, text)


def _draw_waiting(work: Work) -> None:
    state = _("waiting: {ahead} runs ahead").format(ahead=work.ahead)
    if work.why or work.ahead < 2:
        state = _("held") if work.why else _("waiting: 1 run ahead") if work.ahead else _("waiting")
    _link(work.run, f"{work.run} · {state}", ":material/schedule:")
    if work.why:
        st.caption(format.plain(work.why))


def _draw_failed(work: Work) -> None:
    why = locale.text(work.why)
    why = why if len(why) <= LONGEST else f"{why[:LONGEST]}…"
    st.error(format.plain(f"{locale.text(work.label)}: {why}"))
    with st.container(horizontal=True):
        if work.run:
            _link(work.run, _("Look"), ":material/visibility:", key=f"look-{work.key}")
        st.button(_("Dismiss"), key=f"dismiss-{work.key}", on_click=dismiss, args=(work,))


def _link(run: str, label: str, icon: str, key: str = "") -> None:
    """Draw a button that opens the run on the Train page, even if that page is already shown."""
    if st.button(format.plain(label), key=key or f"strip-{run}", icon=icon, type="tertiary"):
        watch_next(run)
        st.switch_page("pages/train.py")
