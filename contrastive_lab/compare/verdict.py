"""The first thing on Compare: which space is better, by how much, and what that rests on."""

from __future__ import annotations

import streamlit as st

from contrastive_core.records.comparison import Comparison
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.evaluation import SOURCES
from contrastive_lab import cache, format, state
from contrastive_lab.compare import score_tables, suspects
from contrastive_lab.compare.comparison_request import CLAIMED, comparison_of
from contrastive_lab.locale import _, message
from contrastive_lab.progress import answer_or_wait, scored_or_wait


def comparable(spaces: list[EmbeddingRef]) -> bool:
    """Whether they can have samples in common; says so where they cannot."""
    data = {state.data_of(s) for s in spaces if not s.is_loaded}
    if len(data) > 1:
        data_names = ", ".join(sorted(d.strip() for d in data))
        st.warning(
            _("These runs have no samples in common: they are of {data_names}. Choose runs of one data set.").format(
                data_names=format.plain(data_names)
            )
        )
    return len(data) < 2


def verdict(spaces: list[EmbeddingRef]) -> Comparison | None:
    """Who is better, by how much, and a table of scores; None while it is not known."""
    scored = [scored_or_wait(run) for s in spaces if (run := s.run)]  # a line for each that is not
    if not all(scored):
        return None
    values = comparison_of(spaces)
    result = answer_or_wait("comparison", values, message("Comparing"))
    if result is None:
        return None
    comparison = Comparison.of(result.meta, result.arrays)
    by = _("By kNN: ") if "knn" in comparison.verdicts else ""
    st.header(by + format.plain(comparison.verdict))
    if probe := comparison.verdicts.get("linear_probe"):
        st.markdown(_("By the linear probe: {probe}").format(probe=format.plain(probe)))
    for text in filter(None, comparison.seeds.values()):
        st.markdown(f"**{format.plain(text)}**")
    suspects.warn(spaces, comparison)
    st.caption(_rests_on(comparison, spaces))
    score_tables.table(spaces, comparison)
    return comparison


def _rests_on(comparison: Comparison, spaces: list[EmbeddingRef]) -> str:
    """How many samples and which features the verdict is of, and when a difference is claimed."""
    n, whole = len(comparison.ids), max(len(rows) for s in spaces if (rows := cache.embedding(s)))
    text = _("{n} samples that all have in common").format(n=f"{n:,}") + (
        _(" of {whole}. ").format(whole=f"{whole:,}") if n < whole else _(". ")
    )
    layer = next((s.layer for s in spaces if not s.is_loaded), None)
    text += _("Features: {sources}. ").format(sources=_(SOURCES[layer])) if layer else ""
    return text + _(CLAIMED)
