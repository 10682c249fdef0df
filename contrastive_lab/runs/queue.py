"""What trains now, what waits behind it, and what could not start."""

from __future__ import annotations

import streamlit as st

from contrastive_core.engine import queue, training
from contrastive_core.records import Progress, runs
from contrastive_lab import format, guard
from contrastive_lab.locale import _
from contrastive_lab.progress import bar
from contrastive_lab.recordings.growing import describe

STATES = "states-of-runs"  # as they were when they were last drawn
ENDING = Progress("ending", 1.0)
FIRST, MOST = 3, 30  # that wait: always in sight, and at all


@st.fragment(run_every=2.0)
def line() -> None:
    """At work, in line, failed at the start; redrawn every two seconds, and with it the page when
    a run has begun, ended or gone since, be it by another tab or by itself."""
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
        st.warning(format.plain(_("{why}. It is left alone; the others wait on.").format(why=why)))
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
        a.error(format.plain(text.format(run_name=run_name, earlier=earlier, why=why)))
        if b.button(_("Dismiss"), key=f"dismiss-{name}"):
            training.dismiss(name)
            st.rerun()


def _waiting(queued: list[queue.Waiting]) -> None:
    """Runs in the queue, the first ones in view."""
    for place, job in enumerate(queued[:FIRST], 1):
        waits(place, job)
    if len(queued) > FIRST:
        with st.expander(_("{queued} more wait").format(queued=len(queued) - FIRST)):
            for place, job in enumerate(queued[FIRST:MOST], FIRST + 1):
                waits(place, job)
            if len(queued) > MOST:
                st.caption(_("… and {queued} more").format(queued=len(queued) - MOST))
    if len(queued) > 1 and st.button(_("Remove all {queued} that wait").format(queued=len(queued))):
        for job in queued:
            with guard.errors_shown():
                queue.remove(job.name)
        st.rerun()


def waits(place: int, job: queue.Waiting) -> None:
    line = st.container(horizontal=True, vertical_alignment="center")
    why = job.blocked_reason() or _("waits for {device}").format(device=job.device)
    line.text(f"{place}. {job.name}: {why}", width="stretch")
    if line.button(_("Remove"), key=f"remove-{job.name}"):
        with guard.errors_shown():
            queue.remove(job.name)
            st.rerun()
