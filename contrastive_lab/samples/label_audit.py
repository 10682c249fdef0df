"""The audit of labels: random rows that a person checks, how many labels are wrong by them, and when to stop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.engine.run_tools import label_audit, sample_annotations
from contrastive_core.records.sample_table import SampleTable
from contrastive_lab import cache, plots, query_params
from contrastive_lab.locale import N_, _, ngettext
from contrastive_lab.samples.current_sample import ASKED, AT, LIST, RANDOM, go_to
from contrastive_lab.samples.findings import Findings

TITLE = N_("Random check")  # how the page calls its list
HOW = N_(
    "One row in three is drawn from groups of rows with similar suspicion. The others are drawn from all rows, to "
    "find wrong labels that the encoder misses. The draw is the same each time."
)
SIZES = (40, 120, 240, 480)
LONG = 600  # right rows, beyond which suspects are the better way to a low bound; a set of fewer is small
SOON = 20  # checks, before which the bound says nothing yet
POINTS = 24  # of a curve


@dataclass(frozen=True, eq=False)
class LabelAudit:
    """The decisions on the labels of one split, and what they say."""

    key: str  # changes with the table and the decisions
    p: np.ndarray  # (n) as the encoder has it
    wrong: np.ndarray  # (n) 1, 0, NaN where undecided
    order: np.ndarray  # random rows, in the order to check them
    reached: int  # so many of them were gone through
    found: label_audit.Audit
    other_draws: int  # checks that belong to other random draws

    @property
    def labels(self) -> int:
        return int(np.isfinite(self.p).sum())

    @property
    def left(self) -> int:
        """Labels that are undecided."""
        return int((np.isfinite(self.p) & np.isnan(self.wrong)).sum())


def audit_of(findings: Findings) -> LabelAudit | None:
    """The audit of the split that is shown; None for several splits, or without labels. The error rates of one split
    say nothing of another."""
    (request, *others), p = findings.requests, findings.tables[0].columns["mislabeled"]
    if others or not np.isfinite(p).any():
        return None
    wrong, settled = decisions(findings), _settled(findings)
    p = np.where(settled, np.nan, p)
    content = cache.digest(str(request.path()), np.flatnonzero(settled).tolist())
    order = _order(content, p)
    lists = [str(findings.marked.get(findings.id(int(row)), {}).get("list")) for row in order]
    reached = max((place for place, name in enumerate(lists, 1) if name == RANDOM), default=0)
    key = cache.digest(content, reached, np.flatnonzero(np.isfinite(wrong)).tolist(), float(np.nansum(wrong)))
    judged = [m for m in sample_annotations.marks(request.marked).values() if np.isfinite(label_audit.is_wrong(m))]
    other_draws = sum(mark.get("list") == RANDOM for mark in judged) - int(
        (np.isfinite(wrong[order]) & (np.array(lists) == RANDOM)).sum()
    )
    return LabelAudit(key, p, wrong, order, reached, _audit(key, p, wrong, order[:reached]), other_draws)


def decisions(findings: Findings) -> np.ndarray:
    """Whether a person found each label (n) wrong; NaN where she did not say."""
    wrong = np.full(len(findings.table), np.nan)
    for sample, mark in findings.marked.items():
        if (row := findings.table.row(sample)) is not None:
            wrong[row] = label_audit.is_wrong(mark)
    return wrong


def _settled(findings: Findings) -> np.ndarray:
    """Rows (n) bool that were decided before the run was trained without the wrong ones among them: the others were
    all found right, so they say nothing of the rows that are left."""
    settled, run = np.zeros(len(findings.table), bool), findings.requests[0].run
    if run is None or not (run.config.get("exclude") or run.config.get("relabel")):
        return settled
    trained = datetime.fromisoformat(str(run.manifest["created"])).timestamp()
    for sample, mark in findings.marked.items():
        if mark.get("time", 0.0) < trained and (row := findings.table.row(sample)) is not None:
            settled[row] = True
    return settled


def recalibrated(findings: Findings) -> Findings:
    """The same with probabilities that heed the decisions, each split's its own. The order of the list stays."""
    wrong = np.where(_settled(findings), np.nan, decisions(findings))
    if np.isnan(wrong).all():
        return findings
    tables = []
    for _request, table, first in findings.parts():
        part = wrong[first : first + len(table)]
        tables.append(table.rescored("mislabeled", label_audit.calibrate(table.columns["mislabeled"], part)))
    return replace(findings, tables=tuple(tables))


@st.cache_resource(max_entries=4, show_spinner=False)
def _order(content: str, _p: np.ndarray) -> np.ndarray:
    return label_audit.draw(_p, SIZES[-1])


@st.cache_resource(max_entries=4, show_spinner=False)
def _audit(key: str, _p: np.ndarray, _wrong: np.ndarray, _drawn: np.ndarray) -> label_audit.Audit:
    return label_audit.audit(_p, _wrong, _drawn)


def rows_to_check(audit: LabelAudit, table: SampleTable) -> np.ndarray:
    """As many random rows as the user chooses, and below that what they say; the first undecided one is at hand."""
    sizes = [size for size in SIZES if size < audit.labels] or [audit.labels]
    label = _("Random rows to check")
    at_least = next((size for size in sizes if size >= audit.reached), sizes[-1])
    size = query_params.one_of(
        st.segmented_control, label, sizes, name="checks", default=at_least, on_change=lambda: go_to(None)
    )
    rows = audit.order[:size]
    if (text := estimate(audit)) is None:
        st.info(
            _("These rows are random, not suspects. Keep a row if its label is right, relabel it or drop it if not. "
              "How many labels are wrong in all is estimated from your first decision on."),
            icon=":material/casino:",
        )  # fmt: skip
    else:
        st.markdown(f"**{text}**")
        say_stop(audit)
    if audit.other_draws:
        st.caption(_said_of_other_draws(audit.other_draws))
    at = st.session_state.get(AT)
    is_new = st.session_state.get(LIST) != RANDOM and at != st.session_state.get(ASKED)
    if (not at or is_new or table.row(at) not in rows) and len(undecided := rows[np.isnan(audit.wrong[rows])]):
        st.session_state[AT] = str(table.columns["id"][undecided[0]])
    return rows


def estimate(audit: LabelAudit | None) -> str | None:
    """How many labels are wrong, with an interval; None before the first random check."""
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


def _said_of_other_draws(count: int) -> str:
    """Why fewer checks count than were made: this run was trained without the wrong labels that the others found."""
    text = ngettext(
        "{count} earlier check belongs to another run and does not count here.",
        "{count} earlier checks belong to another run and do not count here.",
        count,
    )
    return text.format(count=f"{count:,}")


def say_stop(audit: LabelAudit) -> None:
    """Whether a person may stop, and how far she is from it."""
    found = audit.found
    if found.bound < label_audit.CLEAN:
        text = _("Stop here: 95 % sure that fewer than 1 % of labels are wrong, with your decisions applied.")
        st.success(text, icon=":material/check_circle:")
        return
    most = ""
    if found.checked >= SOON:
        most = _(
            "With your decisions applied, up to {share} of labels can still be wrong. This bound is wider than the "
            "interval because it holds at any time and counts only decided rows as settled."
        ).format(share=f"{found.bound:.1%}".replace("%", " %"))
    st.caption(f"{most} {advice(found, audit.left)}".strip())


def advice(found: label_audit.Audit, left: int) -> str:
    """The way to the stop with `left` labels undecided. Random rows lead there only if nearly all will be right."""
    more = found.remaining
    if more is not None and more <= min(left, LONG) and found.found * more <= found.checked:
        return _("You can stop once {count} more random rows are right.").format(count=f"{more:,}")
    if left <= LONG and (more is None or more > left):
        return _("This set is small: decide on all rows.")
    return _("Decide on the likely mislabeled samples: that lowers the bound fastest.")


def show_curve(audit: LabelAudit) -> None:
    """The bound after each number of checks, beside that of as many checks without an encoder."""
    if audit.reached < 2:
        return
    sizes = np.unique(np.linspace(1, audit.reached, min(audit.reached, POINTS)).astype(int)).tolist()
    figure = plots.curves(_curves(audit.key, audit, sizes), _("random rows checked"), _("still wrong at most, %"), 220)
    figure.add_hline(
        y=100 * label_audit.CLEAN, line_dash="dot", annotation_text=_("stop below 1 %"), annotation_position="top left"
    )
    figure.update_layout(margin={"t": 40}, legend={"y": 1.3})
    figure.update_yaxes(rangemode="tozero")
    st.plotly_chart(figure, key="audit-curve")
    text = _(
        "The bound holds with 95 % confidence at any time. It falls as you check random rows and decide on the "
        "likely mislabeled ones. A plain audit checks the same number of random rows without a list of suspects."
    )
    st.caption(text)


def _curves(key: str, audit: LabelAudit, sizes: list[int]) -> dict[str, Any]:
    mine, plain = _bounds(key, sizes, audit)
    return {_("This audit"): (sizes, mine), _("Plain random audit, expected"): (sizes, plain)}


@st.cache_resource(max_entries=4, show_spinner=False)
def _bounds(key: str, sizes: list[int], _audit: LabelAudit) -> tuple[list[float], list[float]]:
    share = _audit.found.number / max(1, _audit.labels)
    mine = label_audit.bounds(_audit.p, _audit.wrong, _audit.order, sizes)
    plain = [label_audit.plain_bound(_audit.labels, size, share) for size in sizes]
    return [100 * bound for bound in mine], [100 * bound for bound in plain]


def remember_list(name: str) -> None:
    """The decisions that come next are made on this list."""
    st.session_state[LIST] = name
