"""Samples: find what a method gets wrong, look, decide, and train again without it."""

from __future__ import annotations

import numpy as np
import streamlit as st

from contrastive_core.records.sample_request import SampleRequest
from contrastive_lab import format, guard, state
from contrastive_lab.locale import _
from contrastive_lab.samples import across_runs, bench, cut_off, detail, example, lists, over_epochs, retrain, selection
from contrastive_lab.samples.current_sample import PARTS, choose_part, row_of
from contrastive_lab.samples.findings import Findings, adopt
from contrastive_lab.samples.table_picker import Pictures, choose, table_or_wait


def page() -> None:
    st.title(_("Samples"))
    example.say()
    requests = choose()
    if requests:
        with guard.on_its_own(requests[0].name):
            show(requests)


def show(requests: list[SampleRequest]) -> None:
    part = choose_part()
    if part == PARTS[0]:
        adopt(requests[0])
        findings = Findings.ready(requests)
        if findings is not None:
            review(findings)
        return
    table = table_or_wait(requests[0])
    if table is None:
        return
    if len(requests) > 1:
        st.caption(_("Of the training images; choose the test images above."))
    section = across_runs.across if part == PARTS[1] else over_epochs.of_all
    section(requests[0], table, Pictures(requests[0]))


def review(findings: Findings) -> None:
    request, table = findings.requests[0], findings.table
    pictures = Pictures(request)
    so_far = bool(findings.missing)
    bench.hear(findings)
    with st.container(key="samples-desk"):  # a phone draws the second above the first (app.py)
        choices, at_hand = st.container(), st.container()
    under = st.container()
    with choices:
        if so_far:
            st.info(
                _(
                    "The {missing} images are still being scored: what stands here is of the {scored} "
                    "images scored so far, and the list will grow."
                ).format(missing=findings.missing[0], scored=f"{len(table):,}"),
                icon=":material/hourglass_top:",
            )
        name = lists.pick(table)
        lists.show_precision(findings.tables, name)
    with st.expander(_("Filter and order")):
        rows = lists.order(table, name)
        if name == "mislabeled":
            with choices:
                rows = cut_off.above(table, rows, under, so_far)
        rows = lists.filtered(table, rows, findings.marked, followed(findings))
        rows = selection.bar(findings, rows)
    row = row_of(table, rows)
    with at_hand:
        if row is None:
            st.info(_("No sample passes these filters."))
        else:
            bench.show(findings, name, rows, row, pictures)
        retrain.bar(findings)
    if row is not None:
        detail.show(findings, name, rows, row, pictures)
        lists.show(findings, name, rows, str(table.columns["id"][row]), pictures)
        retrain.decide_on_many(findings, rows)
    retrain.retrain(findings)
    explain_list(findings, name)


def explain_list(findings: Findings, name: str) -> None:
    with st.expander(_("How this list is made")):
        run = findings.requests[0].run
        lists.show_explanation(findings.table, name, "" if run is None else str(run.config.get("method")))
        for one in findings.requests:
            if left_out := Pictures(one).left_out:
                st.caption(format.plain(left_out))


def followed(findings: Findings) -> np.ndarray | None:
    """Which rows of the list the run's snapshots follow; None where they follow all or none."""
    parts = [
        over_epochs.followed(request, table) for request, table in zip(findings.requests, findings.tables, strict=True)
    ]
    if all(part is None for part in parts):
        return None
    return np.concatenate(
        [
            np.zeros(len(table), bool) if part is None else part
            for part, table in zip(parts, findings.tables, strict=True)
        ]
    )


state.run(page)
