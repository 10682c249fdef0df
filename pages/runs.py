"""Runs: every run as a row, what waits, sweeps, and checkpoints from elsewhere."""

from __future__ import annotations

import streamlit as st

from contrastive_core.records import data_home, runs_home
from contrastive_lab import format, query_params, state
from contrastive_lab.locale import N_, _, ngettext
from contrastive_lab.runs import table
from contrastive_lab.runs.detail import compare, details, difference
from contrastive_lab.runs.import_form import elsewhere
from contrastive_lab.runs.queue import line
from contrastive_lab.runs.sweeps import sweeps

VIEWS = {"runs": N_("Runs"), "sweeps": N_("Sweeps"), "import": N_("Import from elsewhere")}


def page() -> None:
    st.title(_("Runs"))
    text = _("View")
    view = query_params.one_of(
        st.segmented_control, text, VIEWS, name="view", format_func=lambda v: VIEWS[v], label_visibility="collapsed"
    )
    table.undo()
    line()
    {"runs": all_runs, "sweeps": sweeps, "import": elsewhere}[view]()
    label = _("Runs are stored in {runs_home}, caches in {data_home}.")
    st.caption(format.plain(label.format(runs_home=runs_home(), data_home=data_home())))


def all_runs() -> None:
    table.damage()
    listed = state.all_runs()
    if not listed:
        st.info(_("No runs yet. The first one takes less than a minute on digits."))
        st.page_link("pages/train.py", label=_("Go to Train"), icon=":material/play_circle:")
        table.bin_of()
        return
    chosen = table.table(listed)
    if len(chosen) == 1:
        details(chosen[0])
    elif chosen:
        compare(chosen)
        mine = [run for run in chosen if not run.shipped]
        label = ngettext("Delete {mine} run", "Delete {mine} runs", len(mine)).format(mine=len(mine))
        if mine and st.button(label, icon=":material/delete:"):
            table.remove(mine)
        difference(chosen[:2])
    table.bin_of()


state.run(page)
