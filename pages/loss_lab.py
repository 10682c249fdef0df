"""Loss Lab: drag the temperature or the margin, and see how every pair responds."""

from __future__ import annotations

import streamlit as st

from contrastive_lab import cache, query_params, stage, state
from contrastive_lab.locale import _
from contrastive_lab.loss_lab import choices
from contrastive_lab.loss_lab.batch import on_batch
from contrastive_lab.loss_lab.lesson_panel import choose_lesson
from contrastive_lab.loss_lab.simulations import choose_samples, draw_playground, on_circle
from contrastive_lab.playground import LOSSES
from contrastive_lab.recordings import has_rows

SLOTS = ("subject", "stages")  # of the toolbar: what is shown, and how


def page() -> None:
    st.title(_("Loss Lab"))
    head = stage.toolbar()
    run = state.chosen_run()
    if run is None or not has_rows(run):
        with head:
            state.pick_run()
        with stage.below():
            st.info(_("The Loss Lab needs a run with weights, or a recording. Choose one at the top, or train one."))
            st.page_link("pages/train.py", label=_("Go to Train"), icon=":material/play_circle:")
        return
    losses = cache.catalog()["losses"]
    with head:
        subject, segment = (st.container(horizontal=True, width="content", key=f"lab-{slot}") for slot in SLOTS)
        st.html('<i class="knob-room"></i>')  # where the view puts its first knob
        choices.take_subject()
        lesson = choose_lesson()
    own = query_params.current("on", ("circle", "playground"), "")
    if not own:
        shown = on_batch(run, losses, lesson, subject, segment)
        with head:
            choices.export(shown)
        return
    with segment:
        choices.choose_stage(choices.offered_stages(own), own)
    query_params.keep(run=run.name)
    if own == "circle":
        on_circle(subject, losses, lesson)
        return
    with subject:
        samples = choose_samples(run)
    draw_playground(samples, run, {name: losses[name]["kernel"] for name in LOSSES})


state.run(page)
