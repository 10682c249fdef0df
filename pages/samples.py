"""Samples: find what a method gets wrong, look, decide, and train again without it."""

from __future__ import annotations

import numpy as np
import streamlit as st

import session
from contrastive_core import figures, marks
from contrastive_core.sample_table import SampleTable
from layout import (
    sample_across,
    sample_again,
    sample_lists,
    sample_one,
    sample_selection,
    sample_time,
)
from layout.sample_subject import Pictures, choose, table_or_wait

PARTS = ("Findings", "Across runs", "Over time")


def page() -> None:
    st.title("Samples")
    subject = choose()
    if subject is None:
        return
    table = table_or_wait(subject)
    if table is None:
        return
    wanted = st.query_params.get("part", PARTS[0])
    st.session_state.setdefault("samples-part", wanted if wanted in PARTS else PARTS[0])
    if part := st.session_state.pop(sample_lists.NEXT_PART, None):
        st.session_state["samples-part"] = part
    part = st.segmented_control(
        "Part", PARTS, key="samples-part", label_visibility="collapsed", width="stretch"
    )
    st.query_params["part"] = part or PARTS[0]
    pictures = Pictures(subject)
    if part == PARTS[1]:
        sample_across.across(subject, table, pictures)
        return
    if part == PARTS[2]:
        sample_time.of_all(subject, table, pictures)
        return
    found = marks.marks(subject.marked)
    name = sample_lists.pick(table)
    run = subject.run
    sample_lists.told(table, name, "" if run is None else str(run.config.get("method")))
    followed = sample_time.followed(subject, table)
    rows = sample_lists.filtered(table, table.ranked(name), found, followed)
    rows = sample_selection.bar(subject, table, rows)
    sample_again.bar(subject, found)
    row = at_hand(table, rows)
    if row is None:
        st.info("No sample passes these filters.")
    else:
        sample = str(table.columns["id"][row])
        sample_one.show(subject, table, name, rows, row, found, pictures)
        sample_lists.show(table, name, rows, sample, found, pictures)
        sample_again.drop_first(subject, [str(i) for i in table.columns["id"][rows]], found)
    sample_again.retrain(subject, found)


def at_hand(table: SampleTable, rows: np.ndarray) -> int | None:
    """The row of the session's sample, or of the address's, or the list's first."""
    if sample_lists.AT not in st.session_state and (asked := st.query_params.get("sample")):
        sample_lists.open_one(asked)
    wanted = st.session_state.get(sample_lists.AT)
    row = table.row(wanted) if wanted else None
    if wanted and row is None:
        st.warning(figures.plain(f"There is no sample {wanted} in this split."))
    elif row not in rows and wanted != st.session_state.get(sample_lists.ASKED):
        row = None
    if row is None and len(rows):
        row = int(rows[0])
    if row is not None:
        st.query_params["sample"] = str(table.columns["id"][row])
        st.session_state[sample_lists.AT] = str(table.columns["id"][row])
    return row


session.run(page)
