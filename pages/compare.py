"""Compare: two to eight spaces of the same samples, and one verdict."""

from __future__ import annotations

import streamlit as st

from contrastive_core.records.comparison import Comparison
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_lab import guard, query_params, state
from contrastive_lab.compare import (
    checkpoints,
    disagreements,
    maps,
    score_tables,
    setting_curves,
    similarity,
    space_picker,
)
from contrastive_lab.compare.verdict import comparable, verdict, with_scores
from contrastive_lab.locale import N_, _
from contrastive_lab.report import button

VIEWS = (
    *(N_("Maps"), N_("Scores"), N_("Every test"), N_("By class")),
    *(N_("Where they disagree"), N_("How alike"), N_("Plot by setting")),
)


def page() -> None:
    st.title(_("Compare"))
    ready = space_picker.ready()
    names, layer = space_picker.choose(ready)
    if len(names) < 2:
        checkpoints.panel(names)
        return
    comparison, spaces = None, []
    with guard.on_its_own(_("Candidates")):
        spaces = space_picker.spaces(names, layer)
        if not comparable(spaces):
            return
        comparison = verdict(spaces)
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        group = st.segmented_control
        views = [*VIEWS, *([checkpoints.VIEW] if checkpoints.with_towers(names) else [])]
        view = query_params.one_of(group, _("Show"), views, name="view", label_visibility="collapsed", width="content")
        if comparison is not None:
            button.offer(names, "test", layer)
    if view == "Plot by setting":
        setting_curves.axis(ready, layer, names)
    elif view == checkpoints.VIEW:
        checkpoints.panel(names)
    elif comparison is not None:
        with guard.on_its_own(_("Candidates"), guard.UNREADABLE):
            show(view, spaces, comparison)
            if view not in ("Scores", "Every test"):
                with_scores(spaces, comparison)  # the linear probe's verdict comes with them
    elif view == "Maps" and maps.can_be_drawn(spaces):  # they rest on no scores
        maps.maps(spaces)


def show(view: str, spaces: list[EmbeddingRef], comparison: Comparison) -> None:
    match view:
        case "Maps":
            maps.maps(spaces)
        case "Scores" | "Every test":
            if scored := with_scores(spaces, comparison):
                score_tables.tests(scored) if view == "Every test" else score_tables.table(spaces, scored)
        case "By class":
            disagreements.classes(spaces, comparison)
        case "Where they disagree":
            disagreements.disagree(spaces, comparison)
        case _:
            similarity.alike(spaces, comparison)


state.run(page)
