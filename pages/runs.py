"""Runs: every run as a row, what waits, sweeps, and checkpoints from elsewhere."""

from __future__ import annotations

import streamlit as st

import session
from layout import run_list
from layout.run_import import elsewhere
from layout.run_line import line
from layout.run_one import details, difference
from layout.run_sweeps import sweeps

VIEWS = {"runs": "Runs", "sweeps": "Sweeps", "import": "Import from elsewhere"}


def page() -> None:
    st.title("Runs")
    asked = st.query_params.get("view", "runs")
    view = st.segmented_control(
        "View", list(VIEWS), default=asked if asked in VIEWS else "runs",
        format_func=lambda v: VIEWS[v], label_visibility="collapsed", key="runs-view",
    ) or "runs"  # fmt: skip
    st.query_params["view"] = view
    run_list.undo()
    line()
    {"runs": all_runs, "sweeps": sweeps, "import": elsewhere}[view]()


def all_runs() -> None:
    run_list.damage()
    found = session.all_runs()
    if not found:
        st.info("No runs yet. The first one takes less than a minute on digits.")
        st.page_link("pages/train.py", label="Go to Train", icon=":material/play_circle:")
        run_list.bin_of()
        return
    chosen = run_list.table(found)
    if len(chosen) == 1:
        details(chosen[0])
    elif chosen:
        mine = [run for run in chosen if not run.shipped]
        if mine and st.button(f"Delete {len(mine)} runs", icon=":material/delete:"):
            run_list.remove(mine)
        difference(chosen[:2])
    run_list.bin_of()


session.run(page)
