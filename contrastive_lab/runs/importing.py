"""Imports at work, followed on Runs: refreshed, the page finds them again, and each can be stopped.

The address names the one that was begun here (`importing`), whose run is shown at its end."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core.engine import importing
from contrastive_core.engine.task import Task
from contrastive_core.records import atomic, data_home, runs
from contrastive_lab import format, query_params
from contrastive_lab.locale import _, message
from contrastive_lab.progress import follow_begun

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
        if why := task.failure():
            _failed(mine, task, why)
        else:
            _over(mine)
            st.session_state["run"] = mine
            st.switch_page("pages/explore.py")


def _label(name: str) -> str:
    return message("Importing {name}", name=name)


def _failed(name: str, task: Task, why: str) -> None:
    st.warning(format.plain(message("{label}: {why}", label=_label(name), why=why)))
    with st.container(horizontal=True):
        if st.button(_("Try again"), key=f"again-{name}"):
            task.start(label=_label(name))
            st.rerun()
        st.button(_("Dismiss"), key=f"dismiss-{name}", on_click=_over, args=(name,))


def _over(name: str) -> None:
    query_params.keep(importing=None)
    shutil.rmtree(_uploads() / name, ignore_errors=True)


# --- files that were handed over by the browser ------------------------------------------------


def _uploads() -> Path:
    return data_home() / "uploads"


def kept_upload(name: str, upload: Any) -> str:
    """The path of a copy of an upload, kept until the import under this name is over; copies that
    nobody reads any more are removed. Raises: OSError."""
    at_work = importing.at_work()
    for folder in _uploads().glob("*"):
        if folder.name not in at_work:
            shutil.rmtree(folder, ignore_errors=True)
    path = _uploads() / name / Path(upload.name).name
    atomic.write_bytes(path, upload.getbuffer())
    return str(path)
