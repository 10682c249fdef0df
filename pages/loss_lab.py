"""Loss Lab: drag the temperature or the margin, and see how every pair responds."""

from __future__ import annotations

import streamlit as st

from contrastive_lab import stage, state
from contrastive_lab.locale import _
from contrastive_lab.loss_lab import stages
from contrastive_lab.loss_lab.batch import Toolbar, on_batch
from contrastive_lab.loss_lab.circle import on_circle
from contrastive_lab.loss_lab.lesson_panel import choose_lesson
from contrastive_lab.playground import LOSSES
from contrastive_lab.playground.stage import choose_samples, draw_stage
from contrastive_lab.progress import catalog_or_wait
from contrastive_lab.recordings import has_rows


def page() -> None:
    st.title(_("Loss Lab"))
    head = stage.toolbar()
    with head:
        state.pick_run()
    run = state.chosen_run()
    if run is None or not has_rows(run):
        with stage.below():
            st.info(_("The Loss Lab needs a run with weights, or a recording. Choose one at the top, or train one."))
            st.page_link("pages/train.py", label=_("Go to Train"), icon=":material/play_circle:")
        return
    if (catalog := catalog_or_wait()) is None:
        return
    losses = catalog["losses"]
    with head:
        slots = Toolbar(*(st.container(horizontal=True, width="content") for _slot in range(2)))
        stages.read_old_address()
        lesson = choose_lesson()
    if own := stages.without_batch():
        with slots.stages:
            stages.choose_stage([*stages.STAGES], own)
        if own == "circle":
            on_circle(slots.loss, losses, lesson)
            with head:
                stages.export()
        else:
            with slots.loss:
                samples = choose_samples(run)
            draw_stage(samples, run, {name: losses[name]["kernel"] for name in LOSSES})
    else:
        shown = on_batch(run, losses, lesson, slots)
        with head:
            stages.export(shown)


state.run(page)
