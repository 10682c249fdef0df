"""Follow a job: show its progress or failure, and redraw the page at its end."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from contrastive_core.base.errors import Locked
from contrastive_core.base.progress import Progress
from contrastive_core.engine import jobs, queue
from contrastive_core.engine.jobs import Job
from contrastive_core.runs.run import Run
from contrastive_core.spaces.results import Result, Values
from contrastive_core.spaces.space import TOWERS, Space
from contrastive_lab import cache, format
from contrastive_lab.locale import _, message, sentence

TRIES = 2  # starts in one session before a result that nobody can read is said to be so


def answer_or_wait(kind: str, values: Values, what: str, may_stop: bool = False) -> Result | None:
    """Return the result of an analysis; while it is missing, draw its progress and return None."""
    result = cache.result(kind, values)
    if result is None:
        follow(jobs.analysis(kind, values), what, may_stop)
    return result


def scored_or_wait(run: Run) -> bool:
    """Return whether a run's test split is embedded and scored; else draw the progress of each step."""
    if not embedded_or_wait(run, "test", "h"):
        return False
    try:
        if cache.scores(run) is not None:
            return True
        follow(jobs.evaluation(run), message("Preparing {name} (once)", name=run.name))
    except ValueError as error:
        st.warning(format.plain(error))
    return False


def embedded_or_wait(run: Run, split: str, layer: str) -> bool:
    """Return whether a split is embedded; else draw the progress of the task, which also scores an unscored run."""
    try:
        space = Space.of_run(run, split, layer)
        if cache.embedding(space) is not None:
            return True
        if layer != TOWERS and cache.scores(run) is None:
            label = message("Preparing {name} (once)", name=run.name)
            follow(jobs.evaluation(run), label, until=lambda: _is_there(space))
        else:
            label = message("Embedding {name}, {split} (once)", name=run.name, split=split)
            follow(jobs.embedding(run, split, layer), label)
    except ValueError as error:
        st.warning(format.plain(error))
    return False


def _is_there(space: Space) -> bool:
    try:
        return cache.embedding(space) is not None
    except ValueError:  # the run is gone: the page says so
        return True


def follow(
    job: Job, label: str, may_stop: bool = False, until: Callable[[], bool] | None = None, said: str | None = None
) -> None:
    """Start a job unless it runs; draw its progress, or its failure (unless it was `said` elsewhere) with a retry
    button. The page is redrawn at its end, or when `until` is true."""
    mark = f"starts of {job.key}"
    tries = st.session_state.get(mark, 0)
    if not job.is_running():
        problem = job.failure() if tries else None
        if problem is None and tries >= TRIES:
            problem = message("its result cannot be read")
        if problem is None:
            try:
                job.start(label=label)
            except (OSError, Locked) as error:
                problem = sentence(error)
        if problem:
            if problem != said:
                st.warning(format.plain(message("{label}: {problem}", label=label, problem=problem)))
            if st.button(_("Try again"), key=f"again-{job.key}"):
                st.session_state.pop(mark, None)
                job.forget()
                st.rerun()
            return
        tries += 1
    st.session_state[mark] = max(1, tries)
    follow_begun(job, label, may_stop, until)


@st.fragment(run_every=1.0)
def follow_begun(job: Job, label: str, may_stop: bool, until: Callable[[], bool] | None = None) -> None:
    """Draw the progress of a job that was started before. The page is redrawn at its end, or when `until` is true."""
    progress = job.progress()
    if progress is None or (until is not None and until()):
        st.rerun()
    place, button = st.columns([6, 1]) if may_stop else (st, st)
    bar(progress, label, place)
    if may_stop and button.button(_("Stop"), icon=":material/stop:", key=f"stop-{job.key}"):
        job.stop()


def bar(progress: Progress, label: str, place: Any = st) -> None:
    """Draw a progress bar with its label, the stage, and the fraction if known."""
    share = "" if progress.fraction is None else f" · {100 * progress.fraction:.0f} %"
    said = f"{format.plain(label)}: {format.plain(progress.stage)}"  # two sentences: each by itself
    place.progress(progress.fraction or 0.0, f"{said}{share}")


@st.fragment(run_every=1.0)
def follow_training(name: str) -> None:
    """Draw the progress of a queued, starting or running training, and redraw the page at its end."""
    progress = queue.progress_of(name)
    if progress is None:
        st.rerun()
    bar(progress, name)
