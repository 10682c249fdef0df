"""What is at work on Runs: trainings, what waits or could not start, and imports. The address names the import that
was begun here (`importing`), whose run is shown at its end."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core.engine import importing, queue, training
from contrastive_core.records import Progress, atomic, data_home, runs
from contrastive_lab import format, guard, locale, query_params
from contrastive_lab.locale import _, message, ngettext
from contrastive_lab.progress import bar, follow_begun
from contrastive_lab.recordings import describe

STATES = "states-of-runs"  # as they were when they were last drawn
ENDING = Progress("ending", 1.0)
FIRST, MOST = 3, 30  # that wait: always in sight, and at all


@st.fragment(run_every=2.0)
def line() -> None:
    """Show running, queued and failed trainings every two seconds; redraw the page when a state changes."""
    queue.go_on()
    states = {run.name: training.status_of(run)["status"] for run in runs.list_runs()}
    before = st.session_state.get(STATES, states)
    st.session_state[STATES] = states
    if states != before:
        st.rerun()
    working = [run.name for run in training.working()]
    names = list(dict.fromkeys([*working, *training.starting()]))
    queued = [job for job in queue.queue() if job.name not in names]
    for why in queue.broken():
        st.warning(format.plain(_("{why}. It is skipped; the other runs stay queued.").format(why=why)))
    _failures(training.failures())
    for run in runs.list_runs():
        if run.is_recording and run.is_alive():
            st.caption(format.plain(f"{run.name}: {describe(run)}"))
    if not names and not queued:
        return
    with st.container(border=True):
        for name in names:
            a, b = st.columns([5, 1], vertical_alignment="center")
            bar(queue.progress_of(name) or ENDING, name, a)
            if name in working and b.button(_("Stop"), key=f"stop-{name}"):
                training.stop(name)
        _waiting(queued)


def _failures(failed: dict[str, str]) -> None:
    """Runs that could not start, each with a button to dismiss it."""
    for name, why in list(failed.items())[:5]:
        a, b = st.columns([5, 1])
        run_name, _unused, attempt = name.partition(training.EARLIER)
        earlier = _(" (attempt {attempt})").format(attempt=attempt) if attempt else ""
        text = _("{run_name} could not start{earlier}: {why}")
        a.error(format.plain(text.format(run_name=run_name, earlier=earlier, why=locale.text(why))))
        if b.button(_("Dismiss"), key=f"dismiss-{name}"):
            training.dismiss(name)
            st.rerun()


def _waiting(queued: list[queue.Waiting]) -> None:
    """Runs in the queue, the first ones in view."""
    for place, job in enumerate(queued[:FIRST], 1):
        waits(place, job)
    if len(queued) > FIRST:
        more = len(queued) - FIRST
        with st.expander(ngettext("{queued} more waits", "{queued} more wait", more).format(queued=more)):
            for place, job in enumerate(queued[FIRST:MOST], FIRST + 1):
                waits(place, job)
            if len(queued) > MOST:
                st.caption(_("… and {queued} more").format(queued=len(queued) - MOST))
    if len(queued) > 1 and st.button(_("Remove all {queued} queued runs").format(queued=len(queued))):
        for job in queued:
            with guard.errors_shown():
                queue.remove(job.name)
        st.rerun()


def waits(place: int, job: queue.Waiting) -> None:
    line = st.container(horizontal=True, vertical_alignment="center")
    reason = job.blocked_reason()
    why = locale.text(reason) if reason else _("waiting for {device}").format(device=job.device)
    line.text(f"{place}. {job.name}: {why}", width="stretch")
    if line.button(_("Remove"), key=f"remove-{job.name}"):
        with guard.errors_shown():
            queue.remove(job.name)
            st.rerun()


# --- imports -------------------------------------------------------------------------------------


MINE = "importing"


def begin(name: str, arguments: Sequence[str]) -> None:
    """Import as a run of this name, and follow it from the next time the page is drawn. Raises as `importing.begin`."""
    importing.begin(name, arguments)
    query_params.keep(importing=name)
    st.rerun()


def follow_imports() -> None:
    """How far they are, or why the one that was begun here failed; its run, once it is made."""
    mine = query_params.kept_value(MINE)
    try:
        task = importing.task_of(runs.checked_name(mine)) if mine else None
    except ValueError:  # no name that a run can have
        task = None
    mine = mine if task else None
    query_params.keep(importing=mine)
    at_work = importing.at_work()
    for name in at_work:
        if other := importing.task_of(name):
            follow_begun(other, _label(name), may_stop=True)
    if mine and task and mine not in at_work:
        if not (why := task.failure()):
            _over(mine)
            st.session_state["run"] = mine
            st.switch_page("pages/explore.py")
        st.warning(format.plain(message("{label}: {why}", label=_label(mine), why=why)))
        with st.container(horizontal=True):
            if st.button(_("Try again"), key=f"again-{mine}"):
                task.start(label=_label(mine))
                st.rerun()
            st.button(_("Dismiss"), key=f"dismiss-{mine}", on_click=_over, args=(mine,))


def _label(name: str) -> str:
    return message("Importing {name}", name=name)


def _over(name: str) -> None:
    query_params.keep(importing=None)
    shutil.rmtree(_uploads() / name, ignore_errors=True)


def _uploads() -> Path:
    return data_home() / "uploads"


def kept_upload(name: str, upload: Any) -> str:
    """The path of a copy of an upload, kept while its import runs; removes copies of others. Raises OSError."""
    at_work = importing.at_work()
    for folder in _uploads().glob("*"):
        if folder.name not in at_work:
            shutil.rmtree(folder, ignore_errors=True)
    path = _uploads() / name / Path(upload.name).name
    atomic.write_bytes(path, upload.getbuffer())
    return str(path)
