"""Runs: a leaderboard for each data set, and the details of one run; sweeps and imports in dialogs."""

from __future__ import annotations

from functools import partial

import streamlit as st

from contrastive_core import runs
from contrastive_core.base.storage import data_home, runs_home
from contrastive_lab import format, query_params, recordings, stage, state
from contrastive_lab.locale import N_, _
from contrastive_lab.report import button as report
from contrastive_lab.runs import detail, table
from contrastive_lab.runs.import_form import elsewhere
from contrastive_lab.runs.sweeps import sweeps

CLOSED = "runs"  # of `view` in the address, where no dialog is open
DIALOGS = {"sweeps": (N_("Sweeps"), sweeps), "import": (N_("Import from elsewhere"), elsewhere)}


def page() -> None:
    st.title(_("Runs"))
    view = query_params.kept_value("view")
    listed = state.all_runs()
    with stage.toolbar():
        some_runs = table.choose_data(listed) if listed else []
        sought = ""
        if listed:
            help = _(
                "A run matches if its name, title, tags, note, method, data or status contain all words. Narrow it by "
                "show:mine, show:shipped or show:tries."
            )
            sought = query_params.text(
                st.text_input,
                _("Search"),
                name="search",
                placeholder=_("name, tag, note, method"),
                help=help,
                icon=":material/search:",
                width=260,
            )
        st.space("stretch")
        for name, label in (("import", _("Import…")), ("sweeps", _("Sweeps…"))):
            st.button(label, key=f"open-{name}", on_click=query_params.keep, kwargs={"view": name})
        with stage.more():
            columns = query_params.many_of(
                st.pills, _("More columns"), table.BY_CHOICE, name="columns", selection_mode="multi", format_func=_
            )

            def content() -> str:
                return format.table_csv(table.rows_of(some_runs, sought).values())

            st.download_button(_("Table as CSV"), content, "runs.csv", "text/csv", on_click="ignore")
            label = _("Runs are stored in {runs_home}, caches in {data_home}.")
            st.caption(format.plain(label.format(runs_home=runs_home(), data_home=data_home())))
    query_params.keep(view=view if view in DIALOGS else CLOSED)
    leaderboard(some_runs, sought, columns)
    if view in DIALOGS:
        title, draw = DIALOGS[view]
        close = partial(query_params.keep, view=CLOSED)
        st.dialog(_(title), width="large", position="right", on_dismiss=close)(draw)()


def leaderboard(some_runs: list[state.Run], sought: str, columns: list[str]) -> None:
    """Draw the active runs, the table, and beside it one run or the differences of two."""
    picture, inspector = stage.columns()
    with picture:
        with st.container(key="runs-notes"):
            detail.undo()
            table.line()
            text = _("{name} is not listed: {why}. Nothing else in it was changed.")
            for name, why in runs.damaged().items():
                st.warning(format.plain(text.format(name=name, why=why)))
        found, chosen = table.table(some_runs, sought, columns) if some_runs else ([], [])
        if len(chosen) > 1:
            several(chosen)
    with inspector:
        if len(chosen) > 1:
            detail.difference(chosen[:2])
            if all(run.is_recording for run in chosen):
                recordings.curves(chosen)
        elif chosen or found:
            detail.details((chosen or found)[0])
        else:
            st.info(_("No runs yet. The first one takes less than a minute on digits."))
            st.page_link("pages/train.py", label=_("Go to Train"), icon=":material/play_circle:")
    with stage.below():
        detail.bin_of()


def several(chosen: list[state.Run]) -> None:
    """Draw the actions for several runs above the table."""
    with st.container(key="runs-bar", horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(_("**{count} selected**").format(count=len(chosen)), width="content")
        names = [run.name for run in chosen]
        if st.button(_("Compare"), type="primary", icon=":material/compare_arrows:", key="compare-chosen"):
            st.switch_page("pages/compare.py", query_params={"runs": ",".join(names)})
        if st.button(_("Plot by setting"), key="plot-chosen"):
            st.switch_page("pages/compare.py", query_params={"runs": ",".join(names), "view": "Plot by setting"})
        if all(run.weights.exists() for run in chosen):
            report.offer(names)
        mine = [run for run in chosen if not run.shipped]
        if mine:
            label, icon = _("Delete {mine}").format(mine=len(mine)), ":material/delete:"
            st.button(label, icon=icon, key="delete-chosen", on_click=detail.remove, args=[mine])


state.run(page)
