"""Running advisers, of this or another process: their progress, and a link to their answer."""

import contextlib

import streamlit as st

from contrastive_core.advice.plan import Plan, adviser_names, folder_of, load_plan, lock_of
from contrastive_core.base.lock import is_locked
from contrastive_core.base.progress import Progress
from contrastive_core.engine.jobs import Job
from contrastive_lab import format, path_input, query_params
from contrastive_lab.locale import _, message
from contrastive_lab.progress import bar


def job_of(name: str, arguments: tuple[str, ...] = ()) -> Job:
    """Return the job of an adviser. arguments: of the command line after `advise`."""
    return Job(f"_adviser.{name}", folder_of(name) / "answer.json", ("advise", *arguments))


def is_running(name: str) -> bool:
    """Return whether an adviser runs here or in another process, such as a terminal."""
    return job_of(name).is_running() or is_locked(lock_of(name))


def running() -> list[str]:
    """Return the names of the running advisers, newest first."""
    return [name for name in adviser_names() if is_running(name)]


def watch_if_running() -> None:
    """Draw the running advisers, if there are any."""
    if running():
        _watch()


@st.fragment(run_every=2.0)
def _watch() -> None:
    """Draw each running adviser; redraw the page when the last one has ended."""
    names = running()
    if not names:
        st.rerun()
    for name in names:
        with contextlib.suppress(ValueError):  # its plan is damaged: the adviser says so
            if (plan := load_plan(name)) is not None:
                _show(plan)


def _show(plan: Plan) -> None:
    name, job = plan.name, job_of(plan.name)
    text = _("The adviser {name} is training on {dataset}. It runs one try after another and then gives its answer.")
    st.info(format.plain(text.format(name=name, dataset=format.data_of(plan.dataset))))
    if job.is_running():
        bar(job.progress() or Progress("starting"), message("Adviser {name}", name=name))
    else:
        st.caption(_("It was started in another process: stop it there."))
    with st.container(horizontal=True):
        icon, key = ":material/visibility:", f"watch-adviser-{name}"
        if st.button(_("Watch the adviser"), icon=icon, key=key, on_click=_open, args=(plan,)):
            st.rerun()  # all of the page
        if job.is_running() and st.button(_("Stop"), icon=":material/stop:", key=f"stop-adviser-{name}"):
            job.stop()


def _open(plan: Plan) -> None:
    """Restart the page with an adviser and its images, before the fields are drawn."""
    where = path_input.address_of(plan.dataset)
    query_params.begin({**where, "method": plan.method, "adviser": "yes", "advice": plan.name})
