"""Compare: two to eight spaces of the same samples, and one verdict."""

from __future__ import annotations

import streamlit as st

from contrastive_core.embeddings.ref import EmbeddingRef
from contrastive_core.evaluation.comparison import Comparison
from contrastive_lab import guard, query_params, state
from contrastive_lab.compare import choice, disagreements, maps, setting_curves, similarity, tables
from contrastive_lab.compare.verdict import comparable, verdict
from contrastive_lab.report import button

VIEWS = ("Maps", "Every test", "How alike", "Where they disagree", "A setting as an axis")


def page() -> None:
    st.title("Compare")
    ready = choice.ready()
    names, layer = choice.choose(ready)
    if len(names) < 2:
        return
    comparison, spaces = None, []
    with guard.on_its_own("One of these"):
        spaces = choice.spaces(names, layer)
        if not comparable(spaces):
            return
        comparison = verdict(spaces)
        if comparison is not None and all(space.run for space in spaces):
            button.offer(names, "test", layer)
    view = query_params.one_of(st.segmented_control, "Show", VIEWS, name="view",
                               label_visibility="collapsed")  # fmt: skip
    if view == "A setting as an axis":
        setting_curves.axis(ready, layer, names)
    elif comparison is not None:
        with guard.on_its_own("One of these"):
            show(view, spaces, comparison)
    elif view == "Maps" and maps.can_be_drawn(spaces):  # they rest on no scores
        maps.maps(spaces)


def show(view: str, spaces: list[EmbeddingRef], comparison: Comparison) -> None:
    if view == "Maps":
        maps.maps(spaces)
    elif view == "Every test":
        tables.tests(comparison)
    elif view == "How alike":
        similarity.alike(spaces, comparison)
    else:
        disagreements.disagree(spaces, comparison)


state.run(page)
