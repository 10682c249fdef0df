"""Samples: find what a method gets wrong, look, decide, and train again without it."""

from __future__ import annotations

import numpy as np
import streamlit as st

from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples.table import SampleTable
from contrastive_lab import format, state
from contrastive_lab.samples import across_runs, detail, lists, over_epochs, retrain, selection
from contrastive_lab.samples.subject import Pictures, choose, table_or_wait

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
    if part := st.session_state.pop(lists.NEXT_PART, None):
        st.session_state["samples-part"] = part
    part = st.segmented_control(
        "Part", PARTS, key="samples-part", label_visibility="collapsed", width="stretch"
    )
    st.query_params["part"] = part or PARTS[0]
    pictures = Pictures(subject)
    if part == PARTS[1]:
        across_runs.across(subject, table, pictures)
        return
    if part == PARTS[2]:
        over_epochs.of_all(subject, table, pictures)
        return
    found = sample_annotations.marks(subject.marked)
    name = lists.pick(table)
    run = subject.run
    lists.told(table, name, "" if run is None else str(run.config.get("method")))
    followed = over_epochs.followed(subject, table)
    rows = lists.filtered(table, table.ranked(name), found, followed)
    rows = selection.bar(subject, table, rows)
    retrain.bar(subject, found)
    row = at_hand(table, rows)
    if row is None:
        st.info("No sample passes these filters.")
    else:
        sample = str(table.columns["id"][row])
        detail.show(subject, table, name, rows, row, found, pictures)
        lists.show(table, name, rows, sample, found, pictures)
        retrain.drop_first(subject, [str(i) for i in table.columns["id"][rows]], found)
    retrain.retrain(subject, found)


def at_hand(table: SampleTable, rows: np.ndarray) -> int | None:
    """The row of the session's sample, or of the address's, or the list's first."""
    if lists.AT not in st.session_state and (asked := st.query_params.get("sample")):
        lists.open_one(asked)
    wanted = st.session_state.get(lists.AT)
    row = table.row(wanted) if wanted else None
    if wanted and row is None:
        st.warning(format.plain(f"There is no sample {wanted} in this split."))
    elif row not in rows and wanted != st.session_state.get(lists.ASKED):
        row = None
    if row is None and len(rows):
        row = int(rows[0])
    if row is not None:
        st.query_params["sample"] = str(table.columns["id"][row])
        st.session_state[lists.AT] = str(table.columns["id"][row])
    return row


state.run(page)
