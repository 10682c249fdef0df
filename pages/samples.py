"""Samples: find what a method gets wrong, look, decide, and train again without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.records.sample_request import SampleRequest
from contrastive_lab import format, guard, state
from contrastive_lab.locale import _
from contrastive_lab.samples import (
    across_runs,
    bench,
    cut_off,
    detail,
    encoder_quality,
    example,
    label_audit,
    list_basis,
    lists,
    over_epochs,
    pairs,
    retrain,
)
from contrastive_lab.samples.current_sample import PARTS, RANDOM, choose_part, row_of, say_skipped
from contrastive_lab.samples.findings import Findings, adopt, cut_to_selection
from contrastive_lab.samples.table_picker import Pictures, choose, table_or_wait


def page() -> None:
    st.title(_("Samples"))
    example.say()
    retrain.outcome()
    requests, are_pairs = choose()
    if requests:
        with guard.on_its_own(requests[0].name):
            if are_pairs:
                pairs.show(requests[0])
            else:
                show(requests)


def show(requests: list[SampleRequest]) -> None:
    part = choose_part()
    if part == PARTS[0]:
        adopt(requests[0])
        if findings := Findings.ready(requests):
            review(findings)
        return
    table = table_or_wait(requests[0])
    if table is None:
        return
    if len(requests) > 1:
        st.caption(_("This counts the training split. Choose the test split above for its samples."))
    section = across_runs.across if part == PARTS[1] else over_epochs.of_all
    section(requests[0], table)


def review(findings: Findings) -> None:
    bench.hear(findings)
    audit = label_audit.audit_of(findings)
    findings = label_audit.recalibrated(findings)
    table = findings.table
    with st.container(key="samples-lists"):  # one row that scrolls on a phone (app.py)
        name = lists.pick(table)
    findings.announce(name)
    if name == RANDOM and audit is None:
        st.info(_("Choose Train or Test above: error rates belong to one split."))
        return
    with st.container(key="samples-desk"):  # a phone draws the second above the first (app.py)
        choices, at_hand = st.container(), st.container()
    under = st.container()
    with choices:
        if name == "mislabeled" and (run := findings.requests[0].run):
            encoder_quality.show(run, findings.requests[0].frozen)
        lists.show_precision(findings.tables, name)
        list_basis.show(findings, name)
    with st.expander(_("Filter and order")):
        rows = listed(findings, name, audit, choices, under)
        rows = lists.filtered(findings, rows, followed(findings))
        rows = cut_to_selection(findings, rows)
    label_audit.remember_list(name)
    row = row_of(table, rows)
    with at_hand:
        if row is None:
            st.info(_("No sample passes these filters."))
        else:
            bench.show(findings, name, rows, row)
            say_skipped(table, rows, row, findings.marked)
        retrain.bar(findings)
    if row is not None:
        by = "mislabeled" if name == RANDOM else name
        detail.show(findings, by, rows, row)
        lists.show(findings, by, rows, findings.id(row))
        if name != RANDOM:
            retrain.decide_on_many(findings, name, rows)
    retrain.retrain(findings)
    explain_list(findings, name)


def listed(findings: Findings, name: str, audit: label_audit.LabelAudit | None, choices: Any, under: Any) -> np.ndarray:
    """The rows of the list; above the bench what it takes to choose them, below it what is said of the whole set."""
    table = findings.table
    if name == RANDOM and audit:
        with choices:
            rows = label_audit.rows_to_check(audit, table)
        with under:
            label_audit.show_curve(audit)
        return rows
    rows = lists.order(table, name)
    if name not in cut_off.COUNTED:
        return rows
    with choices:
        return cut_off.above(findings, name, rows, under, audit)


def explain_list(findings: Findings, name: str) -> None:
    with st.expander(_("How this list is made")):
        lists.show_explanation(findings.table, name, findings.method)
        for request in findings.requests:
            if left_out := Pictures(request).left_out:
                st.caption(format.plain(left_out))


def followed(findings: Findings) -> np.ndarray | None:
    """Which rows of the list the run's snapshots follow; None where they follow all or none."""
    parts = [(table, over_epochs.followed(request, table)) for request, table, _first in findings.parts()]
    if all(part is None for _table, part in parts):
        return None
    return np.concatenate([np.zeros(len(table), bool) if part is None else part for table, part in parts])


state.run(page)
