"""Runs: every run as a row, what waits, sweeps, and checkpoints from elsewhere."""

from __future__ import annotations

import streamlit as st

from contrastive_core.paths import data_home, runs_home
from contrastive_lab import format, query_params, state
from contrastive_lab.runs import table
from contrastive_lab.runs.detail import compare, details, difference
from contrastive_lab.runs.import_checkpoint import elsewhere
from contrastive_lab.runs.queue import line
from contrastive_lab.runs.sweeps import sweeps

VIEWS = {"runs": "Runs", "sweeps": "Sweeps", "import": "Import from elsewhere"}


def page() -> None:
    st.title("Runs")
    view = query_params.one_of(
        st.segmented_control, "View", VIEWS, name="view", format_func=lambda v: VIEWS[v],
        label_visibility="collapsed",
    )  # fmt: skip
    table.undo()
    line()
    {"runs": all_runs, "sweeps": sweeps, "import": elsewhere}[view]()
    st.caption(format.plain(
        f"Runs lie in {runs_home()}, what can be made again in {data_home()}."
    ))  # fmt: skip


def all_runs() -> None:
    table.damage()
    listed = state.all_runs()
    if not listed:
        st.info("No runs yet. The first one takes less than a minute on digits.")
        st.page_link("pages/train.py", label="Go to Train", icon=":material/play_circle:")
        table.bin_of()
        return
    chosen = table.table(listed)
    if len(chosen) == 1:
        details(chosen[0])
    elif chosen:
        compare(chosen)
        mine = [run for run in chosen if not run.shipped]
        if mine and st.button(f"Delete {len(mine)} runs", icon=":material/delete:"):
            table.remove(mine)
        difference(chosen[:2])
    table.bin_of()


state.run(page)
