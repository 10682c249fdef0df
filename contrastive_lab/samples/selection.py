"""The selection that all pages share, on Samples: its list cut to it, and the list made it."""

from __future__ import annotations

import numpy as np
import streamlit as st

from contrastive_lab import query_params, state
from contrastive_lab.locale import _
from contrastive_lab.samples.findings import Findings
from contrastive_lab.samples.table_picker import embedding_of


def bar(findings: Findings, rows: np.ndarray) -> np.ndarray:
    """Rows of the list, only those selected on the maps if that is asked for."""
    spaces = [(r.split, *one) for r in findings.requests if (one := embedding_of(r))]
    if not spaces:
        return rows
    table, inside = findings.table, np.zeros(len(rows), bool)
    own, splits = (table.extra[k][rows] for k in ("own_id", "split"))
    number = 0
    for split, space, vectors in spaces:
        place = state.place_of(space)
        lit = {vectors.ids[i] for i in state.selection(place) if i < len(vectors)}
        inside |= np.isin(own, list(lit)) & (splits == split)
        number += len(lit)
    a, b = st.columns([3, 1], vertical_alignment="center")
    label = _("Only the {number} selected on the maps").format(number=f"{number:,}")
    if number and query_params.switch(a.toggle, label, name="selected"):
        rows, own, splits = rows[inside], own[inside], splits[inside]
    if b.button(_("Select this list on the maps"), width="stretch", disabled=not len(rows)):
        for split, space, vectors in spaces:
            at = {name: row for row, name in enumerate(vectors.ids)}
            some = own[splits == split].tolist()
            state.select(sorted(at[i] for i in some if i in at), state.place_of(space))
        st.rerun()
    return rows
