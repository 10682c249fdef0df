"""Samples: find what a method gets wrong, look, decide, and train again without it."""

from __future__ import annotations

import streamlit as st

from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples.subject import Subject
from contrastive_lab import guard, state
from contrastive_lab.samples import across_runs, detail, lists, over_epochs, retrain, selection
from contrastive_lab.samples.at_hand import PARTS, choose_part, row_of
from contrastive_lab.samples.subject import Pictures, choose, table_or_wait


def page() -> None:
    st.title("Samples")
    subject = choose()
    if subject is not None:
        with guard.on_its_own(subject.name):
            show(subject)


def show(subject: Subject) -> None:
    table = table_or_wait(subject)
    if table is None:
        return
    part = choose_part()
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
    row = row_of(table, rows)
    if row is None:
        st.info("No sample passes these filters.")
    else:
        sample = str(table.columns["id"][row])
        detail.show(subject, table, name, rows, row, found, pictures)
        lists.show(table, name, rows, sample, found, pictures)
        retrain.drop_first(subject, [str(i) for i in table.columns["id"][rows]], found)
    retrain.retrain(subject, found)


state.run(page)
