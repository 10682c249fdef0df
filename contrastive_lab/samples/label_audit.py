"""The audit of labels: random rows to check, the estimated number of wrong labels, and when to stop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.runs.run import Run
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples import label_audit
from contrastive_core.samples.label_audit import LabelAudit
from contrastive_core.samples.sample_lists import RANDOM
from contrastive_core.samples.sample_table import SampleRequest, SampleTable
from contrastive_lab import cache, figures, query_params
from contrastive_lab.locale import _, ngettext
from contrastive_lab.samples.findings import Findings
from contrastive_lab.samples.subject import ASKED, AT, CHIP, LIST, go_to

SIZES = (40, 120, 240, 480)
LONG = 600  # right rows, beyond which suspects are the better way to a low bound; a set of fewer is small
SOON = 20  # checks, before which the bound says nothing yet
POINTS = 24  # of a curve


def audit_of(findings: Findings) -> LabelAudit | None:
    """Return the audit of the shown split; None for several splits, or without labels. The error rate of one split says
    nothing about another."""
    return None if len(findings.requests) > 1 else _audit_of(findings.requests[0], findings.tables[0])


def _audit_of(request: SampleRequest, table: SampleTable) -> LabelAudit | None:
    marks = sample_annotations.marks(request.marked)
    decisions = [(i, *map(str, (m.get(k, "") for k in ("what", "label", "list", "many")))) for i, m in marks.items()]
    return _audit(cache.digest(str(request.path()), decisions), table, marks, request.run)


@st.cache_resource(max_entries=8, show_spinner=False)
def _audit(key: str, _table: SampleTable, _marks: sample_annotations.Marks, _run: Run | None) -> LabelAudit | None:
    return label_audit.audit_table(_table, _marks, _run)


def recalibrated(findings: Findings) -> Findings:
    """Return the findings with probabilities recalibrated by each split's random checks. The order of the list
    stays."""
    tables = list(findings.tables)
    for number, (request, table) in enumerate(zip(findings.requests, findings.tables, strict=True)):
        audit = _audit_of(request, table)
        if audit is not None and audit.found.checked:
            checked = np.full(len(table), np.nan)
            checked[audit.order[: audit.reached]] = audit.wrong[audit.order[: audit.reached]]
            tables[number] = table.rescored("mislabeled", label_audit.calibrate(table.columns["mislabeled"], checked))
    return replace(findings, tables=tuple(tables))


def rows_to_check(audit: LabelAudit, table: SampleTable, chips: DeltaGenerator) -> np.ndarray:
    """Return as many random rows as the user chooses, and draw the estimate; the first undecided one becomes
    current."""
    sizes = [size for size in SIZES if size < audit.labels] or [audit.labels]
    label = _("Random rows to check")
    at_least = next((size for size in sizes if size >= audit.reached), sizes[-1])
    box, titles = chips.selectbox, {n: _("{count} rows").format(count=f"{n:,}") for n in sizes}
    size = query_params.one_of(
        box, label, sizes, name="checks", default=at_least, on_change=go_to, format_func=titles.get, width=CHIP
    )
    rows = audit.order[:size]
    if (text := estimate(audit)) is None:
        text = _(
            "These rows are random, not suspects. Keep a row if its label is right, relabel it or drop it if not. "
            "From your first decision on, the app estimates how many labels are wrong."
        )
        st.caption(text)
    else:
        is_done = not np.isnan(audit.wrong[rows]).any()
        done = _("This check is done: all {size} rows are decided.").format(size=f"{size:,}") if is_done else ""
        st.caption(" ".join(filter(None, [f"**{text}**", done, say_stop(audit), say_left(audit)])))
    at = st.session_state.get(AT)
    is_new = st.session_state.get(LIST) != RANDOM and at != st.session_state.get(ASKED)
    if (not at or is_new or table.row(at) not in rows) and len(undecided := rows[np.isnan(audit.wrong[rows])]):
        st.session_state[AT] = str(table.columns["id"][undecided[0]])
    return rows


def estimate(audit: LabelAudit | None) -> str | None:
    """Describe the number of wrong labels with an interval; None before the first random check."""
    if audit is None or not (checks := audit.found.checked):
        return None
    low, high = audit.found.interval
    text = ngettext(
        "{number} wrong labels of {labels} (95 % CI {low}–{high}), from 1 check",
        "{number} wrong labels of {labels} (95 % CI {low}–{high}), from {checks} checks",
        checks,
    )
    figures = {"number": audit.found.number, "labels": audit.labels, "low": low, "high": high, "checks": checks}
    return text.format(**{name: f"{value:,.0f}" for name, value in figures.items()})


def say_stop(audit: LabelAudit) -> str:
    """Describe whether the user may stop, or how to get there."""
    if audit.found.bound < label_audit.CLEAN:
        return _("Stop here: 95 % sure that fewer than 1 % of labels are wrong, with your decisions applied.")
    return advice(audit.found, audit.left)


def say_left(audit: LabelAudit) -> str:
    """Describe how many suspects to review until the share of wrong labels is at most 10, 5 or 1 %."""
    left = {f"{100 * share:.0f}": f"{number:,}" for share, number in audit.found.reviews.items() if number}
    each = [_("{number} for at most {share} %").format(number=n, share=share) for share, n in left.items()]
    text = _("Suspects to review until about this share of labels is wrong: {numbers}.")
    return text.format(numbers=", ".join(each)) if each else ""


def advice(found: label_audit.Audit, left: int) -> str:
    """Recommend a next step with `left` labels undecided; random rows only if nearly all will probably be right."""
    more = found.remaining
    if more is not None and more <= min(left, LONG) and found.found * more <= found.checked:
        return _("You can stop once {count} more random rows are right.").format(count=f"{more:,}")
    if left <= LONG and (more is None or more > left):
        return _("This set is small: decide on all rows.")
    return _("Decide on the likely mislabeled samples: that lowers the bound fastest.")


def show_curve(audit: LabelAudit) -> None:
    """Draw the remaining share of wrong labels, and the bound after each number of checks, with and without an
    encoder."""
    found = audit.found
    if found.checked >= SOON and found.bound >= label_audit.CLEAN:
        text = _(
            "With your decisions applied, up to {share} of labels can still be wrong. This bound is wider than the "
            "interval because it holds at any time and counts only decided rows as settled."
        )
        st.caption(text.format(share=f"{found.bound:.1%}".replace("%", " %")))
    if audit.reached < 2:
        return
    sizes = np.unique(np.linspace(1, audit.reached, min(audit.reached, POINTS)).astype(int)).tolist()
    share = audit.found.number / max(1, audit.labels)
    mine = [100 * bound for bound in label_audit.bounds(audit.p, audit.wrong, audit.order, sizes)]
    plain = [100 * label_audit.plain_bound(audit.labels, size, share) for size in sizes]
    both = {str(_("This audit")): (sizes, mine), str(_("Plain random audit, expected")): (sizes, plain)}
    figure = figures.curves(both, _("random rows checked"), _("still wrong at most, %"), 220)
    figure.add_hline(
        y=100 * label_audit.CLEAN, line_dash="dot", annotation_text=_("stop below 1 %"), annotation_position="top left"
    )
    figure.update_yaxes(rangemode="tozero")
    st.plotly_chart(figure, key="audit-curve", config=figures.NO_BAR)
    text = _(
        "The bound holds with 95 % confidence at any time. It falls as you check random rows and decide on the "
        "likely mislabeled ones. A plain audit checks the same number of random rows without a list of suspects."
    )
    st.caption(text)
