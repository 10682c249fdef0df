"""The tables that the page lists together: one for each split, joined, with what was decided."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from secrets import token_hex
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.engine.run_tools import sample_annotations
from contrastive_core.records import embedding_ref, runs
from contrastive_core.records.frozen import RUN
from contrastive_core.records.sample_request import SampleRequest
from contrastive_core.records.sample_table import SampleTable, decimals, merged_table
from contrastive_lab import locale, query_params, state
from contrastive_lab.locale import _
from contrastive_lab.samples.current_sample import LIST, RANDOM
from contrastive_lab.samples.table_picker import Pictures, embedding_of, table_or_wait

SHOWN = "samples-shown"  # of the session: what the list is made of, and how many of its tables it has
WINDOW = "samples-window"  # of the session: its name in what it decides, and since when it is open


@dataclass(frozen=True, eq=False)
class Findings:
    """Requests with the tables that are made; one at least."""

    requests: tuple[SampleRequest, ...]
    tables: tuple[SampleTable, ...]
    missing: tuple[str, ...] = ()  # splits whose tables are still being made
    arrived: tuple[SampleTable, ...] = ()  # tables made since the list was shown, which join it on request

    @staticmethod
    def ready(requests: Sequence[SampleRequest]) -> Findings | None:
        """The requests whose table is there, or None; the first that is missing is made and followed."""
        tables: list[SampleTable] = []
        for request in requests:
            if (table := table_or_wait(request)) is None:
                break
            tables.append(table)
        missing = tuple(request.split for request in requests[len(tables) :])
        if not tables:
            return None
        list_of, number = st.session_state.get(SHOWN, ((), 0))
        if list_of != (names := tuple(map(repr, requests))):
            number = len(tables)
        st.session_state[SHOWN] = (names, number)
        return Findings(tuple(requests[:number]), tuple(tables[:number]), missing, tuple(tables[number:]))

    def announce(self, name: str) -> None:
        """Which images are still being scored, and how many were since the list was shown: it keeps its place."""
        if self.missing:
            text = _("The {missing} samples are still being scored. Until then the list has {scored} samples.")
            values = {"missing": locale.text(self.missing[0]), "scored": f"{len(self.table):,}"}
            st.info(text.format(**values), icon=":material/hourglass_top:")
        elif self.arrived and name != RANDOM:  # rates belong to a split
            line = st.container(horizontal=True, vertical_alignment="center")
            text = _("{number} more samples have been scored.")
            line.info(text.format(number=f"{sum(map(len, self.arrived)):,}"), icon=":material/new_releases:")
            if line.button(_("Add them to the list"), type="primary"):
                names, number = st.session_state[SHOWN]
                st.session_state[SHOWN] = (names, number + len(self.arrived))
                st.rerun()

    @cached_property
    def table(self) -> SampleTable:
        """All rows as one list; the paths of the tables say whether it is the same."""
        by_split = {r.split: table for r, table in zip(self.requests, self.tables, strict=True)}
        joined = _joined(tuple(str(r.path()) for r in self.requests), by_split)
        return joined.rescored("mislabeled", np.concatenate([t.columns["mislabeled"] for t in self.tables]))

    @property
    def method(self) -> str:
        """The method that trained the encoder behind the lists on these images; "" where none is known."""
        run, by = self.requests[0].run, self.requests[0].frozen
        if run is not None and by is not None:
            other = runs.load(by.name.removeprefix(RUN)) if by.name.startswith(RUN) else None
            run = other if other and state.data_key(other) == state.data_key(run) else None
        return "" if run is None else str(run.config.get("method"))

    @cached_property
    def pictures(self) -> Pictures:
        return Pictures(self.requests[0])

    def parts(self) -> Iterator[tuple[SampleRequest, SampleTable, int]]:
        """The request and table of each split, and where its rows begin in the list."""
        first = 0
        for request, table in zip(self.requests, self.tables, strict=True):
            yield request, table, first
            first += len(table)

    def of(self, row: int) -> tuple[SampleRequest, SampleTable, int]:
        """The request and table of a row's own split, and its number there."""
        request, table, first = [part for part in self.parts() if part[2] <= row][-1]
        return request, table, row - first

    def id(self, row: int) -> str:
        return str(self.table.columns["id"][row])

    def own_id(self, row: int) -> str:
        return str(self.table.extra["own_id"][row])

    def stack(self, rows: np.ndarray) -> np.ndarray | None:
        """Images (n, c, h, w) of rows; None where one has none."""
        return self.pictures.stack(*(list(map(str, self.table.extra[k][rows])) for k in ("own_id", "split")))

    @cached_property
    def marked(self) -> dict[str, dict[str, Any]]:
        """Return the decisions on the rows, by their ids in the joined table."""
        return {
            self.id(first + row): mark
            for request, table, first in self.parts()
            for own, mark in sample_annotations.marks(request.marked).items()
            if (row := table.row(own)) is not None
        }

    @cached_property
    def marked_rows(self) -> np.ndarray:
        """The decided rows (m), in their order."""
        return np.sort([row for sample in self.marked if (row := self.table.row(sample)) is not None]).astype(int)

    def about(self, row: int) -> dict[str, Any]:
        """Return the given and the suggested label to store with a decision."""
        table = self.table
        known: dict[str, Any] = {"given": str(table.columns["label"][row]), "list": st.session_state.get(LIST, "")}
        if "suggested" in table.extra:
            known["suggested"] = str(table.extra["suggested"][row])
            if np.isfinite(wrong := float(table.columns["mislabeled"][row])):
                known["wrong"] = decimals(wrong)
            known["confidence"] = decimals(float(table.extra["suggested_probability"][row]))
        return known


def window() -> tuple[str, float]:
    """This session's name in what it decides, and since when it is open."""
    name, since = st.session_state.setdefault(WINDOW, (token_hex(4), time.time()))
    return str(name), float(since)


@st.cache_resource(max_entries=4, show_spinner=False)
def _joined(paths: tuple[str, ...], _tables: dict[str, SampleTable]) -> SampleTable:
    return merged_table(_tables)


def adopt(request: SampleRequest) -> None:
    """Take over decisions that runs of this data set hold of their own, as all did once."""
    if (run := request.run) is not None:
        data = state.data_key(run)
        sample_annotations.adopt([r for r in state.all_runs() if state.data_key(r) == data])


def cut_to_selection(findings: Findings, rows: np.ndarray) -> np.ndarray:
    """Rows of the list, only those selected on the maps if that is asked for; and the way to select them there."""
    spaces = [(r, vectors) for r in findings.requests if (vectors := embedding_of(r)) is not None]
    if not spaces:
        return rows
    places = [state.place_of(embedding_ref.of_name(r.name, r.split)) for r, _unused in spaces]
    own, splits = (findings.table.extra[k][rows] for k in ("own_id", "split"))
    inside, number = np.zeros(len(rows), bool), 0
    for (request, vectors), place in zip(spaces, places, strict=True):
        lit = {vectors.ids[i] for i in state.selection(place) if i < len(vectors)}
        inside |= np.isin(own, list(lit)) & (splits == request.split)
        number += len(lit)
    a, b = st.columns([3, 1], vertical_alignment="center")
    label = _("Only the {number} selected on the maps").format(number=f"{number:,}")
    if number and query_params.switch(a.toggle, label, name="selected"):
        rows, own, splits = rows[inside], own[inside], splits[inside]
    if b.button(_("Select this list on the maps"), width="stretch", disabled=not len(rows)):
        for (request, vectors), place in zip(spaces, places, strict=True):
            listed = set(own[splits == request.split].tolist())
            state.select([i for i, name in enumerate(vectors.ids) if name in listed], place)
        st.rerun()
    return rows
