"""Samples: find what a method gets wrong, look, decide, and train again without it."""

from __future__ import annotations

import streamlit as st

from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples.request import SampleRequest
from contrastive_lab import format, guard, state
from contrastive_lab.samples import (
    across_runs,
    cut_off,
    detail,
    lists,
    over_epochs,
    retrain,
    selection,
)
from contrastive_lab.samples.at_hand import PARTS, choose_part, row_of
from contrastive_lab.samples.choice import Pictures, choose, table_or_wait


def page() -> None:
    st.title("Samples")
    request = choose()
    if request is not None:
        with guard.on_its_own(request.name):
            show(request)


def show(request: SampleRequest) -> None:
    table = table_or_wait(request)
    if table is None:
        return
    part = choose_part()
    pictures = Pictures(request)
    if pictures.left_out:
        st.caption(format.plain(pictures.left_out))
    if part == PARTS[1]:
        across_runs.across(request, table, pictures)
        return
    if part == PARTS[2]:
        over_epochs.of_all(request, table, pictures)
        return
    marked = sample_annotations.marks(request.marked)
    name = lists.pick(table)
    run = request.run
    lists.show_explanation(table, name, "" if run is None else str(run.config.get("method")))
    followed = over_epochs.followed(request, table)
    rows = lists.order(table, name)
    if name == "mislabeled":
        rows = cut_off.above(table, rows)
    rows = lists.filtered(table, rows, marked, followed)
    rows = selection.bar(request, table, rows)
    retrain.bar(request, marked)
    row = row_of(table, rows)
    if row is None:
        st.info("No sample passes these filters.")
    else:
        sample = str(table.columns["id"][row])
        detail.show(request, table, name, rows, row, marked, pictures)
        lists.show(table, name, rows, sample, marked, pictures)
        retrain.decide_on_many(request, table, rows, marked)
    retrain.retrain(request, marked)


state.run(page)
