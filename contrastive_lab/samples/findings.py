"""The tables that the page lists together: one for each split, joined, with what was decided."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from secrets import token_hex
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.engine.run_tools import sample_annotations
from contrastive_core.records.merged_table import merged_table
from contrastive_core.records.sample_request import SampleRequest
from contrastive_core.records.sample_table import SampleTable, decimals
from contrastive_lab import state
from contrastive_lab.locale import _
from contrastive_lab.samples.table_picker import table_or_wait

WINDOW = "samples-window"  # of the session: its name in what it decides, and since when it is open


@dataclass(frozen=True, eq=False)
class Findings:
    """Requests with the tables that are made; one at least."""

    requests: tuple[SampleRequest, ...]
    tables: tuple[SampleTable, ...]
    missing: tuple[str, ...] = ()  # splits whose tables are still being made

    @staticmethod
    def ready(requests: Sequence[SampleRequest]) -> Findings | None:
        """Those of the requests whose table is there; the first that is not is made and followed.
        None where none is there."""
        found: list[tuple[SampleRequest, SampleTable]] = []
        for request in requests:
            table = table_or_wait(request)
            if table is None:
                break
            found.append((request, table))
        if not found:
            return None
        missing = tuple(request.split for request in requests[len(found) :])
        there, tables = zip(*found, strict=True)
        return Findings(there, tables, missing)

    @cached_property
    def table(self) -> SampleTable:
        """All rows as one list; the paths of the tables say whether it is the same."""
        return _joined(
            tuple(str(r.path()) for r in self.requests),
            self.requests[0].loss,
            dict(zip((r.split for r in self.requests), self.tables, strict=True)),
        )

    def of(self, row: int) -> tuple[SampleRequest, SampleTable, int]:
        """The request and table of a row's own split, and its number there."""
        for request, table in zip(self.requests, self.tables, strict=True):
            if row < len(table):
                return request, table, row
            row -= len(table)
        raise IndexError(_("there is no row {row}").format(row=row))

    def own_id(self, row: int) -> str:
        return str(self.table.extra["own_id"][row])

    @property
    def training(self) -> SampleRequest | None:
        """The request of the training images, if they are among these."""
        return next((r for r in self.requests if r.split == "train"), None)

    @cached_property
    def marked(self) -> dict[str, dict[str, Any]]:
        """What was decided on the rows, by their ids in the joined table."""
        found, first = {}, 0
        for request, table in zip(self.requests, self.tables, strict=True):
            for own, mark in sample_annotations.marks(request.marked).items():
                if (row := table.row(own)) is not None:
                    found[str(self.table.columns["id"][first + row])] = mark
            first += len(table)
        return found

    def about(self, row: int) -> dict[str, Any]:
        """What is kept with a decision: the label that was given, and what was suggested."""
        table = self.table
        known: dict[str, Any] = {"given": str(table.columns["label"][row])}
        if "suggested" in table.extra:
            known["suggested"] = str(table.extra["suggested"][row])
            if np.isfinite(wrong := float(table.columns["mislabeled"][row])):
                known["wrong"] = decimals(wrong)
            known["confidence"] = decimals(float(table.extra["suggested_probability"][row]))
        return known

    def undo(self, event: str | None = None) -> str | None:
        """Take this window's last decision back; the id of its sample in the joined table."""
        name, since = window()
        done = sample_annotations.undo([r.marked for r in self.requests], name, since, event)
        if done is None:
            return None
        split = next(r.split for r in self.requests if r.marked == done[0])
        own, splits = self.table.extra["own_id"], self.table.extra["split"]
        at = np.flatnonzero((own == done[1]) & (splits == split))
        return str(self.table.columns["id"][at[0]]) if len(at) else None


def window() -> tuple[str, float]:
    """This session's name in what it decides, and since when it is open."""
    name, since = st.session_state.setdefault(WINDOW, (token_hex(4), time.time()))
    return str(name), float(since)


@st.cache_resource(max_entries=4, show_spinner=False)
def _joined(paths: tuple[str, ...], _loss: str, _tables: dict[str, SampleTable]) -> SampleTable:
    return merged_table(_tables)


def adopt(request: SampleRequest) -> None:
    """Take over decisions that runs of this data set hold of their own, as all did once."""
    if (run := request.run) is not None:
        data = state.data_key(run)
        sample_annotations.adopt([r for r in state.all_runs() if state.data_key(r) == data])
