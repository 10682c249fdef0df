"""How many labels are wrong: a cut-off on the score of the list, and what is expected above it."""

from __future__ import annotations

import numpy as np
import streamlit as st

from contrastive_core.samples.table import SampleTable
from contrastive_lab import plots, query_params

__all__ = ["above", "expected"]

START = 0.5  # more likely wrong than right
BINS = 50


def above(table: SampleTable, rows: np.ndarray) -> np.ndarray:
    """The rows of the list, only those above the cut-off if that is asked for."""
    score = table.score("mislabeled")
    known = score[np.isfinite(score)]
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="center")
    with right:
        cut = query_params.number(
            st.slider, "Cut-off", 0.0, 1.0, name="cut", default=START, step=0.01,
            help="Labels whose probability of being wrong is above it are suspects.",
        )  # fmt: skip
        st.markdown(f"**{expected(known, cut)}**")
        only = query_params.switch(st.toggle, "Only those above the cut-off", name="above")
        st.caption(how_many(table))
    left.plotly_chart(
        plots.histogram(known, cut, "probability that the label is wrong", "samples", BINS),
        key="cut-off",
    )
    return rows[score[rows] > cut] if only else rows


def expected(score: np.ndarray, cut: float) -> str:
    """How many of the scores are above the cut-off, and how many of these labels are wrong."""
    p = score[score > cut]
    if not len(p):
        return f"No label scores above {cut:.2f}."
    spread = 1.96 * float(np.sqrt((p * (1 - p)).sum())) / len(p)
    low, high = max(0.0, p.mean() - spread), min(1.0, p.mean() + spread)
    return (
        f"{len(p):,} of {len(score):,} labels score above {cut:.2f}; {p.mean():.0%} of them are "
        f"expected to be wrong (95 %: {low:.0%} to {high:.0%}), and {(score.sum() - p.sum()):,.0f} "
        "more below it."
    )


def how_many(table: SampleTable) -> str:
    """The number of wrong labels, with its interval."""
    wrong, low, high = (round(table.facts.get(k, 0)) for k in ("wrong", "wrong_low", "wrong_high"))
    return (
        f"About {wrong:,} of {len(table):,} labels look wrong (95 %: {low:,} to {high:,}). What "
        "the encoder cannot tell apart is not counted: where classes overlap there are more."
    )
