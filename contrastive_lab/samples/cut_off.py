"""A cut-off on the score of a list, and what is expected above it; how many labels are wrong."""

from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.records.sample_table import SampleTable
from contrastive_lab import cache, locale, query_params
from contrastive_lab.components.cut_off import CutOff, draw_cut_off
from contrastive_lab.components.shared.mount import reported_state
from contrastive_lab.locale import N_, _, ngettext
from contrastive_lab.samples.current_sample import AT, go_to
from contrastive_lab.samples.findings import Findings
from contrastive_lab.samples.label_audit import LabelAudit, estimate

START = 0.5  # more likely wrong than right; of an entropy, half of its most
HIGHEST = 0.95  # of the other lists a twentieth lies above the first cut-off, as with what is pushed hardest
LISTED = "samples-listed"  # of the session: how long the list above the cut-off was
CUTS = np.linspace(0, 1, 51)
COUNTED = {
    "mislabeled": N_("probability that the label is wrong; counts on a logarithmic scale"),
    "false_negative": N_("cosine similarity to the nearest negative; counts on a logarithmic scale"),
    "ambiguous": N_("normalized entropy of the voters; counts on a logarithmic scale"),
}  # the lists with a cut-off


def above(findings: Findings, name: str, rows: np.ndarray, under: Any, audit: LabelAudit | None) -> np.ndarray:
    """The rows of the list above the cut-off; all where none is above it, or all are asked for. Args: under: the
    container, below the bench, for what is said of the whole set. audit: the decisions on labels."""
    table, so_far, score = findings.table, bool(findings.missing), findings.table.score(name)
    known = score[np.isfinite(score)]
    key = f"cut-off-{cache.digest(findings.requests, name, len(known))}"
    cuts, first = cuts_of(name, known)
    parameter = "cut" if name == "mislabeled" else f"cut_{name}"
    cut = float(query_params.kept_number(parameter, first, cuts[0], 1.0))  # of the address, or let go last

    def let_go() -> None:
        if (value := reported_state(key, "cut")) is not None:
            query_params.keep(**{parameter: min(1.0, max(0.0, float(value)))})
            go_to(None)

    nearest, content = (
        float(cuts[np.abs(cuts - cut).argmin()]),
        cache.digest(key, float(known.sum()), audit and audit.key, findings.marked_rows.tolist()),
    )
    said = (content, locale.language(), so_far, name)
    undecided = np.isin(np.flatnonzero(np.isfinite(score)), findings.marked_rows, invert=True)
    probability = known if audit is None or name != "mislabeled" else audit.found.probability[np.isfinite(score)]
    shown = CutOff(
        *_said_of_cuts(*said, table, (known, probability, undecided)), nearest, _(COUNTED[name]), float(cuts[0])
    )
    draw_cut_off(shown, key, let_go)
    query_params.keep(**{parameter: cut})
    line = under.container(horizontal=True, vertical_alignment="center")
    if name == "mislabeled":
        line.caption(how_many(table, so_far, audit))
    label = _("Show the rest")
    every = query_params.switch(line.toggle, label, name="every", on_change=lambda: go_to(None), width="content")
    is_over = score[rows] > cut
    if name == "mislabeled" and audit is not None:
        is_over |= _gone_through(table, rows, is_over, np.isfinite(audit.wrong), (key, cut))
    over = rows[is_over]
    if not every and not len(over):
        st.info(_("No sample scores above the cut-off: here are all, the highest first."))
    return rows if every or not len(over) else over


def _gone_through(
    table: SampleTable, rows: np.ndarray, is_over: np.ndarray, decided: np.ndarray, key: tuple[str, float]
) -> np.ndarray:
    """Which rows (m) stay on the list: those decided up to the sample at hand, and this one. Decisions lower the
    others' probabilities, but the list does not end before it."""
    last, most = st.session_state.get(LISTED, (key, 0))
    most = max(int(np.flatnonzero(is_over).max(initial=-1)) + 1, most if last == key else 0)
    st.session_state[LISTED] = (key, most)
    row, stay = table.row(st.session_state.get(AT) or ""), np.zeros(len(rows), bool)
    for place in np.flatnonzero(rows[:most] == row) if row is not None else ():
        stay[: place + 1] = decided[rows[: place + 1]]
        stay[place] = True
    return stay


def cuts_of(name: str, known: np.ndarray) -> tuple[np.ndarray, float]:
    """The cuts that can be chosen (51), and the first of them. Similarities are close to 1: theirs begin where the
    lowest are left out."""
    if name == "mislabeled" or not len(known):
        return CUTS, START
    low, first = np.quantile(known, (0.01, HIGHEST))
    low = min(0.99, max(0.0, float(np.floor(100 * low) / 100))) if name == "false_negative" else 0.0
    first = first if name == "false_negative" else min(START, first)
    cuts = low + (1 - low) * CUTS
    return cuts, float(cuts[np.abs(cuts - first).argmin()])


@st.cache_resource(max_entries=8, show_spinner=False)
def _said_of_cuts(
    key: str,
    language: str,
    so_far: bool,
    name: str,
    _table: SampleTable,
    _known: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> tuple[list[int], list[str], list[str]]:
    """The histogram, and what is said at each cut-off: of a million scores only once. `_known`: score, probability of
    a wrong label, and whether undecided, of the samples with a score."""
    score, probability, undecided = _known
    cuts = cuts_of(name, score)[0]
    heads = [suspects(score, c, so_far, undecided) for c in cuts]
    if name == "false_negative" and "false_negatives_of_same_class" in _table.facts:
        shared = _of_same_class(_table)
        return counts(score, cuts), heads, [false_negatives(score, shared, c) for c in cuts]
    if name != "mislabeled":
        return counts(score, cuts), heads, [""] * len(cuts)
    return counts(score), heads, [expected(score, c, probability) for c in cuts]


def _of_same_class(table: SampleTable) -> np.ndarray:
    """Whether a sample and what it is pushed away from have the same label, for those with a score (m) bool."""
    label, order = table.columns["label"], np.argsort(table.columns["id"])
    place = np.searchsorted(table.columns["id"], table.extra["lookalike"], sorter=order)
    other = label[order[np.minimum(place, len(order) - 1)]]
    shared = (label == other) & (label != "")
    return shared[np.isfinite(table.score("false_negative"))]  # type: ignore[no-any-return]


def counts(score: np.ndarray, cuts: np.ndarray = CUTS) -> list[int]:
    """Count the scores in each bin; a score equal to a cut is below it."""
    share = (score - cuts[0]) / (cuts[-1] - cuts[0])
    places = np.clip(np.ceil(share * (len(cuts) - 1) - 1e-9).astype(int) - 1, 0, len(cuts) - 2)
    return np.bincount(places, minlength=len(cuts) - 1).tolist()  # type: ignore[no-any-return]


def suspects(score: np.ndarray, cut: float, so_far: bool = False, undecided: np.ndarray | None = None) -> str:
    """The number of suspects in a few words, and of those that are undecided (m) bool, if some are decided."""
    count = int((score > cut).sum())
    text = _("1 suspect above {cut}") if count == 1 else _("{count} suspects above {cut}")
    text = _("So far {count} above {cut}") if so_far else text
    some = text.format(count=f"{count:,}", cut=f"{cut:.3f}".removesuffix("0"))
    left = count if undecided is None else int((undecided & (score > cut)).sum())
    return some if left == count else _("{suspects}, {count} undecided").format(suspects=some, count=f"{left:,}")


def expected(score: np.ndarray, cut: float, probability: np.ndarray | None = None) -> str:
    """How many of the labels above the cut-off are wrong, and how many more below it. `probability`: 0 or 1 for those
    that were decided on; else the score."""
    every = score if probability is None else probability
    p = every[score > cut]
    if not len(p):
        return _("No label scores above {cut}.").format(cut=f"{cut:.2f}")
    text = _("About {wrong} of these {listed} labels look wrong to this encoder, and {more} more below the cut-off.")
    return text.format(wrong=f"{p.sum():,.0f}", listed=f"{len(p):,}", more=f"{every.sum() - p.sum():,.0f}")


def false_negatives(score: np.ndarray, same_class: np.ndarray, cut: float) -> str:
    """How many of the samples above the cut-off are pushed away from their own class."""
    over = score > cut
    text = _("{same} of these {listed} are pushed away from a sample of their own class.")
    return text.format(same=f"{int(same_class[over].sum()):,}", listed=f"{int(over.sum()):,}") if over.any() else ""


def how_many(table: SampleTable, so_far: bool, audit: LabelAudit | None = None) -> str:
    """The number of wrong labels by random checks; before them the least number that the encoder can see, only of what
    is scored so far, if it is. No interval: noise and ambiguous classes look alike to a model (label_audit.py)."""
    if text := estimate(audit):
        return text
    low, total = round(table.facts.get("wrong_low", 0)), f"{len(table):,}"
    if audit is not None and low:  # the decisions on suspects count
        low = round(low * float(np.nansum(audit.found.probability)) / float(np.nansum(audit.p)))
    if so_far:
        seen = table.facts.get("wrong", 0) if audit is None else np.nansum(audit.found.probability)
        wrong = f"{round(float(seen)):,}"
        return _("About {wrong} of the {total} labels scored so far look wrong.").format(wrong=wrong, total=total)
    if not low:
        text = _("This encoder sees no clear sign of wrong labels among {total}. There may be some.")
    else:
        text = ngettext(
            "This encoder can see at least about {wrong} wrong label among {total}. There may be more.",
            "This encoder can see at least about {wrong} wrong labels among {total}. There may be more.",
            low,
        )
    return text.format(wrong=f"{low:,}", total=total)
