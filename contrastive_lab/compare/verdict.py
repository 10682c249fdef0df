"""The first thing on Compare: which space is better, by how much, and what that rests on."""

from __future__ import annotations

import streamlit as st

from contrastive_core.embeddings.ref import EmbeddingRef
from contrastive_core.evaluation.comparison import Comparison
from contrastive_core.evaluation.record import SOURCES
from contrastive_core.jobs import at_once
from contrastive_lab import cache, format, state
from contrastive_lab.compare import suspects, tables
from contrastive_lab.compare.asked import CLAIMED, comparison_of
from contrastive_lab.progress import answer_or_wait, scored_or_wait

__all__ = ["comparable", "verdict"]


def comparable(spaces: list[EmbeddingRef]) -> bool:
    """Whether they can have samples in common; says so where they cannot."""
    data = {state.data_of(s) for s in spaces if not s.is_loaded}
    if len(data) > 1:
        data_names = ", ".join(sorted(d.strip() for d in data))
        st.warning(
            f"These runs have no samples in common: they are of {format.plain(data_names)}. "
            "Choose runs of one data set."
        )
    return len(data) < 2


def verdict(spaces: list[EmbeddingRef]) -> Comparison | None:
    """Who is better, by how much, and a table of scores; None while it is not known."""
    scored = [scored_or_wait(run) for s in spaces if (run := s.run)]  # a line for each that is not
    if not all(scored):
        return None
    values = comparison_of(spaces)
    at_once.keep_comparison(values)
    result = answer_or_wait("comparison", values, "Comparing")
    if result is None:
        return None
    comparison = Comparison.of(result.meta, result.arrays)
    by = "By kNN: " if "knn" in comparison.verdicts else ""
    st.header(by + format.plain(comparison.verdict))
    if probe := comparison.verdicts.get("linear_probe"):
        st.markdown(f"By the linear probe: {format.plain(probe)}")
    for text in filter(None, comparison.seeds.values()):
        st.markdown(f"**{format.plain(text)}**")
    suspects.warn(spaces, comparison)
    st.caption(_rests_on(comparison, spaces))
    tables.table(spaces, comparison)
    return comparison


def _rests_on(comparison: Comparison, spaces: list[EmbeddingRef]) -> str:
    """How many samples and which features the verdict is of, and when a difference is claimed."""
    n, whole = len(comparison.ids), max(len(rows) for s in spaces if (rows := cache.embedding(s)))
    text = f"{n:,} samples that all have in common" + (f" of {whole:,}. " if n < whole else ". ")
    layer = next((s.layer for s in spaces if not s.is_loaded), None)
    text += f"Features: {SOURCES[layer]}. " if layer else ""
    return text + CLAIMED
