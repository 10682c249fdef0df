"""The current sample on the Samples page, and its changes."""

from collections.abc import Container

import numpy as np
import streamlit as st

from contrastive_core.samples.sample_table import SampleTable
from contrastive_lab import format, query_params
from contrastive_lab.locale import _, ngettext

AT = "sample-at"  # of the session: the id of the sample at hand
ASKED = "sample-asked"  # the one that was asked for by its id
ASKED_OF = "sample-asked-of"  # the tables that it was asked for of
PLACE = "sample-place"  # where in the list it stood last
OF = "sample-of"  # which tables the list was made of last
LIST = "sample-list"  # the list that was shown last, on which its decisions are made
MOVES = "sample-moves"  # how often the page brought another to hand, and not the bench


def go_to(sample: str | None) -> None:
    """Make a sample current; None for the first of the list."""
    st.session_state[AT] = sample
    st.session_state[PLACE] = 0
    st.session_state[MOVES] = moves() + 1


def look_at(sample: str) -> None:
    """Take over the bench's current sample."""
    st.session_state[AT] = sample


def follow_list(of: str) -> None:
    """Restart from the page's current sample if the list now comes from other tables."""
    if st.session_state.get(OF, of) != of:
        st.session_state[MOVES] = moves() + 1
        st.session_state[PLACE] = 0
    st.session_state[OF] = of


def moves() -> int:
    """Return a counter that grows when the page, not the bench, changes the current sample."""
    return int(st.session_state.get(MOVES, 0))


def open_one(sample: str) -> None:
    """Make a sample current even if it is not on the list."""
    go_to(sample)
    st.session_state[ASKED] = sample
    st.session_state.pop(ASKED_OF, None)


def row_of(table: SampleTable, rows: np.ndarray, decided: np.ndarray) -> int | None:
    """Return the row of the current sample, else the first that is not `decided`; None for an empty list."""
    sample = st.session_state.get(AT)
    row = table.row(sample) if sample else None
    if sample and row is None:  # its id in its own split, where the list has another for it, or the other way round
        own, split = table.extra["own_id"], str(table.extra["split"][0])
        row = table.row(sample.removeprefix(f"{split}/"))
        row = next(iter(np.flatnonzero(own == sample).tolist()), None) if row is None else row
    if sample and sample == st.session_state.get(ASKED):
        of = st.session_state.get(OF)
        is_of_these = st.session_state.setdefault(ASKED_OF, of) == of  # not of another run
        if row is None and is_of_these:
            st.warning(format.plain(_("There is no sample {sample} here.").format(sample=sample)))
    elif row not in rows:  # it was at hand in another list, or of another space
        row = None
    if not sample and len(open_places := np.flatnonzero(~np.isin(rows, decided))):
        row = int(rows[open_places[0]])
    if row is None and len(rows):  # the list lost it: the one that stands in its place
        row = int(rows[min(st.session_state.get(PLACE, 0), len(rows) - 1)])
    if row is not None:
        st.session_state[PLACE] = next(iter(np.flatnonzero(rows == row).tolist()), 0)
        st.session_state[AT] = str(table.columns["id"][row])
        query_params.keep(sample=st.session_state[AT])
    return row


def say_skipped(table: SampleTable, rows: np.ndarray, row: int, decided: Container[str]) -> None:
    """At the end of the list, draw the number of undecided rows before it and a button to the first one."""
    if not len(rows) or row != rows[-1]:
        return
    skipped = [name for name in table.columns["id"][rows[:-1]].tolist() if name not in decided]
    if not skipped:
        return
    line = st.container(horizontal=True, vertical_alignment="center")
    count = len(skipped)
    text = ngettext("{count} row before this one is undecided.", "{count} rows before this one are undecided.", count)
    line.caption(text.format(count=f"{count:,}"))
    line.button(_("Go to the first undecided row"), on_click=go_to, args=(skipped[0],))
