"""The selection that all pages share, on Samples: its list cut to it, and the list made it."""

from __future__ import annotations

import numpy as np
import streamlit as st

from contrastive_core.samples.request import SampleRequest
from contrastive_core.samples.table import SampleTable
from contrastive_lab import query_params, state
from contrastive_lab.samples.choice import embedding_of

__all__ = ["bar"]


def bar(request: SampleRequest, table: SampleTable, rows: np.ndarray) -> np.ndarray:
    """Rows of the list, only those selected on the maps if that is asked for."""
    embedding = embedding_of(request)
    if embedding is None:
        return rows
    space, vectors = embedding
    place = state.place_of(space)
    lit = {vectors.ids[i] for i in state.selection(place) if i < len(vectors)}
    a, b = st.columns([3, 1], vertical_alignment="center")
    ids = table.columns["id"][rows].astype(str)
    inside = np.isin(ids, list(lit))
    label = f"Only the {len(lit):,} selected on the maps"
    if lit and query_params.switch(a.toggle, label, name="selected"):
        rows, ids = rows[inside], ids[inside]
    if b.button("Select this list on the maps", width="stretch", disabled=not len(rows)):
        at = {name: row for row, name in enumerate(vectors.ids)}
        state.select(sorted(at[i] for i in ids.tolist() if i in at), place)
        st.rerun()
    return rows
