"""Loss Lab: drag the temperature or the margin, see every pair answer."""

from __future__ import annotations

import streamlit as st

from contrastive_lab import query_params, state
from contrastive_lab.locale import N_, _
from contrastive_lab.loss_lab.batch import on_batch
from contrastive_lab.loss_lab.circle import on_circle
from contrastive_lab.loss_lab.lesson_panel import choose_lesson, leave
from contrastive_lab.progress import catalog_or_wait
from contrastive_lab.recordings import has_rows

MODES = {"batch": N_("A real batch"), "circle": N_("Points on a circle")}


def page() -> None:
    head = st.container(horizontal=True, vertical_alignment="center", gap="medium")
    head.title(_("Loss Lab"), width="content")
    run = state.chosen_run()
    if run is None or not has_rows(run):
        st.info(_("The Loss Lab needs a run with weights, or a recording. Choose one in the sidebar, or train one."))
        st.page_link("pages/train.py", label=_("Go to Train"), icon=":material/play_circle:")
        return
    if (catalog := catalog_or_wait()) is None:
        return
    losses = catalog["losses"]
    with head:
        lesson = choose_lesson()
        mode = query_params.one_of(
            st.segmented_control,
            _("On"),
            MODES,
            name="on",
            format_func=MODES.get,
            label_visibility="collapsed",
            on_change=leave,
            width="content",
        )
    if mode == "circle":
        on_circle(losses, lesson)
    else:
        on_batch(run, losses, lesson)


state.run(page)
