"""Compare's tables: scores and cost of each space, and every paired test between them."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from contrastive_core.records.comparison import Comparison
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.evaluation import SOURCES
from contrastive_core.records.run_metrics import cost_of
from contrastive_core.records.score import Scores
from contrastive_lab import cache, format
from contrastive_lab.locale import N_, _
from contrastive_lab.tables import draw_table

TITLES = {"knn": N_("kNN accuracy"), "linear_probe": N_("Linear probe accuracy"), "purity": N_("Purity")}
TITLES |= {"silhouette": N_("Silhouette"), "alignment": N_("Alignment"), "tolerance": N_("Tolerance")}
TITLES |= {"uniformity": N_("Uniformity")}
COST = {"seconds": N_("training, s"), "images_per_s": "images/s", "memory_mb": N_("memory, MB")}
COST |= {"parameters": "parameters"}
P_VALUES = {k: st.column_config.NumberColumn(format="%.2g") for k in ("p", N_("p, corrected"))}
SHARES = ("knn", "linear_probe", "purity")


def table(spaces: list[EmbeddingRef], comparison: Comparison) -> None:
    """Scores with intervals and cost of each run, then the references of the first: raw pixels, untrained."""
    rows = []
    for space, scores in zip(spaces, comparison.scores, strict=True):
        cost: Mapping[str, Any] = cost_of(run) if (run := space.run) else {}
        rows.append({"run": space.title, **_cells(scores), **{text: cost.get(k) for k, text in COST.items()}})
    run = next((s.run for s in spaces if not s.is_loaded), None)
    record = cache.scores(run) if run else None
    by_source = record.scores if record else {}
    rows += [{"run": _(SOURCES[k]), **_cells(by_source[k])} for k in ("raw", "random") if k in by_source]
    accuracies = (N_("kNN accuracy, %"), N_("Linear probe accuracy, %"))
    first = ["run", *(head for name in accuracies for head in (name, f"{name} (95 %)"))]
    known = dict.fromkeys(k for row in rows for k in row)
    heads = [h for h in first if h in known] + [h for h in known if h not in first]
    short = {h: "95 %" for h in heads if h.endswith(" (95 %)")}
    alt = _("Scores and cost of each run")
    draw_table(rows, hide_index=True, column_order=heads, column_config=short, placeholder="–", alt=alt)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(_("Click a column's head to sort. Times and memory are those of the machine that trained."))
        full = [{h: row.get(h) for h in heads} for row in rows]
        st.download_button(_("Table as CSV"), format.table_csv(full), "compare.csv", "text/csv")


def _cells(scores: Scores) -> dict[str, Any]:
    """Values and intervals of one run's scores, by the heads of their columns."""
    row: dict[str, Any] = {}
    for score in scores.values():
        if score.value is None:
            continue
        share = score.unit == "share"
        head = score.title + (", %" if share else "")
        row[head] = round(100 * score.value, 1) if share else round(score.value, 3)
        if text := format.interval_of(score):
            row[f"{head} (95 %)"] = text
        if score.approximation:
            row[f"{head} (made of)"] = score.approximation
    return row


def tests(comparison: Comparison) -> None:
    """Paired differences of every score between every two runs, corrected for their number."""
    for metric in comparison.verdicts:
        st.markdown(f"**{_(TITLES[metric])}**")
        rows = [
            {
                "A": d.a,
                "B": d.b,
                N_("A − B, points"): round(100 * d.value, 2),
                "95 %": _interval(*d.interval, 100, "+.1f"),
                N_("p, corrected"): d.p_corrected,
                N_("only A right"): d.only_a,
                N_("only B right"): d.only_b,
                N_("shown by the data"): d.claimed,
            }
            for d in comparison.differences
            if d.metric == metric
        ]
        draw_table(rows, hide_index=True, column_config=P_VALUES)
    if comparison.differences:
        text = _(
            "McNemar's exact test on who is right, corrected by Holm for the number of pairs and "
            "accuracies; the interval is a paired bootstrap."
        )
        st.caption(text)
    _other_tests(comparison)


def _other_tests(comparison: Comparison) -> None:
    """The tests of scores that have no table of their own."""
    rows = []
    for t in (t for t in comparison.tests if t["score"] not in comparison.verdicts):
        title, unit = TITLES[t["score"]], 100 if t["score"] in SHARES else 1
        rows.append(
            {
                "score": _(title) + (_(", points") if unit == 100 else ""),
                "A": t["a"],
                "B": t["b"],
                "A − B": round(unit * t["value"], 3),
                "95 %": _interval(t["low"], t["high"], unit, "+.3g"),
                "p": t["p"],
                N_("p, corrected"): t["p_corrected"],
                N_("shown by the data"): t["p_corrected"] < 0.05 and (t["low"] > 0 or t["high"] < 0),
            }
        )
    if rows:
        st.markdown(_("**Every other score**: {rows} paired tests on the same samples").format(rows=len(rows)))
        draw_table(rows, hide_index=True, column_config=P_VALUES)
        text = _(
            "Right or wrong by McNemar's exact test, means by a paired t test; all p values, the "
            "accuracies' among them, are corrected together by Holm for {tests} tests. One seed "
            "each: for a claim about methods choose three seeds of both."
        )
        st.caption(text.format(tests=len(comparison.tests)))


def _interval(low: float, high: float, unit: int, digits: str) -> str:
    return _("{low} to {high}").format(low=f"{unit * low:{digits}}", high=f"{unit * high:{digits}}")
