"""Advisers that train, here or in another process: how far they are, and the way to their answer."""

import contextlib

import streamlit as st

from contrastive_core.engine.training import Task
from contrastive_core.records import Progress, is_locked
from contrastive_core.records.advice import Plan, adviser_names, folder_of, load_plan, lock_of
from contrastive_lab import command_files, format, query_params
from contrastive_lab.locale import _, message
from contrastive_lab.progress import bar


def task_of(name: str, arguments: tuple[str, ...] = ()) -> Task:
    """The process of an adviser. arguments: of the command line after `advise`."""
    return Task(f"adviser.{name}", ("advise", *arguments), folder_of(name) / "answer.json")


def is_running(name: str) -> bool:
    """Here, or in another process, such as a terminal."""
    return task_of(name).is_running() or is_locked(lock_of(name))


def running() -> list[str]:
    """Names of the running advisers, the newest first."""
    return [name for name in adviser_names() if is_running(name)]


@st.fragment(run_every=2.0)
def watch() -> None:
    """Each running adviser. The page is drawn anew when the last one has ended."""
    names = running()
    if not names:
        st.rerun()
    for name in names:
        with contextlib.suppress(ValueError):  # its plan is damaged: the adviser says so
            if (plan := load_plan(name)) is not None:
                _show(plan)


def _show(plan: Plan) -> None:
    name, task = plan.name, task_of(plan.name)
    text = _("The adviser {name} is training on {dataset}. It trains one try after the other and then answers.")
    st.info(format.plain(text.format(name=name, dataset=format.data_of(plan.dataset))))
    if task.is_running():
        bar(task.progress() or Progress("starting"), message("Adviser {name}", name=name))
    else:
        st.caption(_("It was started in another process: stop it there."))
    with st.container(horizontal=True):
        icon, key = ":material/visibility:", f"watch-adviser-{name}"
        if st.button(_("Watch the adviser"), icon=icon, key=key, on_click=_open, args=(plan,)):
            st.rerun()  # all of the page
        if task.is_running() and st.button(_("Stop"), icon=":material/stop:", key=f"stop-adviser-{name}"):
            task.stop()


def _open(plan: Plan) -> None:
    """Begin the page anew with an adviser and its images; before the fields are drawn."""
    where = command_files.address_of(plan.dataset)
    query_params.begin({**where, "method": plan.method, "adviser": "yes", "advice": plan.name})
