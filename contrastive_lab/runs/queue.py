"""What trains now, what waits behind it, and what could not start."""

from __future__ import annotations

import streamlit as st

from contrastive_core import runs
from contrastive_core.errors import Locked
from contrastive_core.jobs import queue, training
from contrastive_core.progress import Progress
from contrastive_lab import format
from contrastive_lab.progress import bar
from contrastive_lab.recordings.growing import describe

__all__ = ["line"]

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
    queued, broken, failed = queue.queue(), queue.broken(), training.failures()
    working = training.working()
    starting = [name for name in training.starting() if name not in {r.name for r in working}]
    names = [*(r.name for r in working), *starting]
    queued = [job for job in queued if job.name not in names]
    for why in broken:
        st.warning(format.plain(f"{why}. It is left alone; the others wait on."))
    for name, why in list(failed.items())[:5]:
        a, b = st.columns([5, 1])
        run_name, _, attempt = name.partition(training.EARLIER)
        earlier = f" (attempt {attempt})" if attempt else ""
        a.error(format.plain(f"{run_name} could not start{earlier}: {why}"))
        if b.button("Dismiss", key=f"dismiss-{name}"):
            training.dismiss(name)
            st.rerun()
    growing = [run for run in runs.list_runs() if run.is_recording and run.is_alive()]
    for run in growing:
        st.caption(format.plain(f"{run.name}: {describe(run)}"))
    if not names and not queued:
        return
    with st.container(border=True):
        for run in working:
            a, b = st.columns([5, 1], vertical_alignment="center")
            bar(queue.progress_of(run.name) or ENDING, run.name, a)
            if b.button("Stop", key=f"stop-{run.name}"):
                training.stop(run.name)
        for name in starting:
            bar(queue.progress_of(name) or ENDING, name)
        for place, job in enumerate(queued[:FIRST], 1):
            waits(place, job)
        if len(queued) > FIRST:
            with st.expander(f"{len(queued) - FIRST} more wait"):
                for place, job in enumerate(queued[FIRST:MOST], FIRST + 1):
                    waits(place, job)
                if len(queued) > MOST:
                    st.caption(f"… and {len(queued) - MOST} more")
        if len(queued) > 1 and st.button(f"Remove all {len(queued)} that wait"):
            for job in queued:
                leave(job.name, again=False)
            st.rerun()


def waits(place: int, job: queue.Waiting) -> None:
    line = st.container(horizontal=True, vertical_alignment="center")
    why = job.blocked_reason() or f"waits for {job.device}"
    line.text(f"{place}. {job.name}: {why}", width="stretch")
    if line.button("Remove", key=f"remove-{job.name}"):
        leave(job.name)


def leave(name: str, again: bool = True) -> None:
    try:
        queue.remove(name)
    except Locked as error:
        st.error(format.plain(error))
        return
    if again:
        st.rerun()
