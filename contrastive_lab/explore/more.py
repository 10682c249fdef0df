"""What is asked for below the map: all scores, each with its own view, and the way out."""

from __future__ import annotations

import numpy as np
import streamlit as st

from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_lab import query_params
from contrastive_lab.explore import scores, selection
from contrastive_lab.locale import _, message
from contrastive_lab.progress import answer_or_wait
from contrastive_lab.report import button


def show(space: EmbeddingRef, rows: EmbeddingSet, xy: np.ndarray, picked: list[int]) -> None:
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom"):
        view = query_params.one_of(
            st.segmented_control, _("More"), scores.VIEWS, name="more", optional=True, width="content"
        )
        selection.out(space, rows, xy, picked)
        if space.run and not space.epoch:
            button.offer([space.name], space.split, space.layer)
    if view:
        values = {"space": space.values}
        answer = answer_or_wait("scores", values, message("All scores and what they say of each sample"))
        if answer is not None:
            scores.more(space, view, answer, rows)
