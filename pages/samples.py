"""Samples: find samples that a method gets wrong, decide on them, and train again with the decisions."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.samples.label_audit import LabelAudit
from contrastive_core.samples.sample_lists import RANDOM
from contrastive_lab import home, locale, query_params, stage, state
from contrastive_lab.locale import _
from contrastive_lab.samples import bench, lists, retrain
from contrastive_lab.samples.findings import Findings, cut_to_selection, nearest_rows, recalibrated
from contrastive_lab.samples.subject import LIST, choose, go_to, row_of, say_skipped, take_subject


class Places(NamedTuple):
    """The containers of the page, from the toolbar down."""

    chips: DeltaGenerator  # what is looked at
    progress: DeltaGenerator
    save: DeltaGenerator
    more: DeltaGenerator
    desk: DeltaGenerator
    below: DeltaGenerator


def page() -> None:
    st.title(_("Samples"))
    with stage.toolbar():
        state.pick_run(take_subject())
        chips = st.container(horizontal=True, wrap=False, width="content", gap="small", key="samples-chips")
        progress = st.container(horizontal=True, wrap=False, width="content", gap="small", key="samples-progress")
        save, more = st.container(width="content", key="samples-save-place"), stage.more()
    notice = st.container(gap="small", key="samples-notice")
    at = Places(chips, progress, save, more, st.container(key="samples-desk"), stage.below())
    with notice:
        home.say()
        retrain.outcome()
        if requests := choose(chips, more):
            with stage.on_its_own(requests[0].name):
                if findings := Findings.ready(requests):
                    review(findings, at)


def review(findings: Findings, at: Places) -> None:
    bench.hear(findings)
    findings, audits = recalibrated(findings)
    audit = audits[0] if len(audits) == 1 else None
    with at.chips:
        findings = replace(findings, list=lists.pick(findings.table))
    table, one = findings.table, findings.list
    if one.key == RANDOM and audit is None:
        st.info(_("Choose Train or Test above: error rates belong to one split."))
        return
    lists.show_basis(findings, one)
    run, note = findings.requests[0].run, ""
    if one.key == "mislabeled" and run:
        note = retrain.show_encoder(run, at.below)
    rows = every = listed(findings, audit, at)
    with at.more:
        rows = lists.filtered(findings, rows)
        rows = nearest_rows(findings, cut_to_selection(findings, rows))
        has_pictures = findings.pictures.kind == "image"
        if has_pictures:
            how = query_params.one_of(st.segmented_control, _("As"), ["pictures", "table"], name="as")
        if one.key != RANDOM and not one.decisions and len(rows):
            retrain.decide_on_many(findings, rows)
    lists.show_narrowed(table)
    st.session_state[LIST] = one.key  # the decisions that come next are made on it
    row = row_of(table, rows, findings.marked_rows)
    with at.progress:
        retrain.show_progress(findings, rows)
    title = _("Save decisions") if findings.requests[0].pairs else _("Save labels")
    with at.save.popover(title, key="samples-save") as place:
        retrain.save(findings, rows, place)
    if row is None:
        st.info(_("No sample passes these filters."))
    else:
        say_skipped(table, rows, row, findings.marked)
        with at.desk:
            bench.show(findings, rows, row, note)
    with at.below:
        show_below(findings, audit, rows, row, as_table=not has_pictures or how == "table")
        if one.key == "mislabeled" and "suggested" in table.extra:
            lists.confusion(table, every)


def listed(findings: Findings, audit: LabelAudit | None, at: Places) -> np.ndarray:
    """Draw the controls of the list; return its rows."""
    one = findings.list
    if one.key == RANDOM and audit:
        return lists.rows_to_check(audit, findings.table, at.chips)
    with at.more:
        rows = lists.order(findings.table, one)
        if one.cut is None:
            return rows
        every = query_params.switch(st.toggle, _("Show the rest"), name="every", on_change=go_to)
    with at.chips.container(key="samples-cut"):
        return lists.above(findings, rows, every, audit)


def show_below(findings: Findings, audit: LabelAudit | None, rows: np.ndarray, row: int | None, as_table: bool) -> None:
    """Draw the details of the sample and of the whole list below the review panel."""
    one, run = findings.list, retrain.request_to_train(findings).run
    if row is not None:
        bench.show_detail(findings, row)
    if one.key == "mislabeled" and audit and audit.estimate:
        st.caption(locale.text(audit.estimate))
    if row is not None and as_table:
        lists.as_table(findings, rows)
    if one.changes and run is not None:
        retrain.results(run)
    with st.expander(_("How this list is made")):
        lists.show_explanation(findings)


state.run(page)
