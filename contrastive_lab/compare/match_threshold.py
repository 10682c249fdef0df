"""The similarity from which a pair is a match, for each compared space with two towers, with its calibration."""

from pathlib import Path

import streamlit as st

from contrastive_core.base.json_files import json_bytes
from contrastive_core.compare.comparison import hash_of
from contrastive_core.compare.match_threshold import RATE, JudgedPairs, MatchThreshold, find_threshold
from contrastive_core.spaces.label_files import read_qrels
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, figures, format, guard, locale
from contrastive_lab.compare import verdict
from contrastive_lab.compare.space_picker import SHAPES
from contrastive_lab.locale import N_, Deferred, _

VIEW = N_("Match threshold")


def show(spaces: list[Space]) -> None:
    """Draw the threshold of each space at the chosen false-match rate, and the shares of matches by similarity."""
    st.subheader(_("From which similarity is a pair a match?"))
    rate = st.number_input(
        _("Highest false-match rate, %"),
        0.1,
        50.0,
        100 * RATE,
        0.5,
        width=240,
        help=_("The share of pairs that are no match and still reach the threshold."),
    )
    judgments, found = verdict.judgments(), dict[str, MatchThreshold]()
    for shape, space in zip(SHAPES, spaces, strict=False):
        with guard.errors_shown():
            pairs = _pairs(space, judgments, hash_of(judgments) if judgments else "")
            found[f"{shape} {space.title}"] = find_threshold(pairs, rate / 100)
    if not found:
        return
    for name, one in found.items():
        st.markdown(format.plain(locale.text(one.sentence(name))))
        st.caption(format.plain(locale.text(one.basis)))
    bins = {name: one.calibration for name, one in found.items()}
    lines = {name: ([b.similarity for b in own], [100 * b.share for b in own]) for name, own in bins.items()}
    figure = figures.curves(lines, N_("cosine similarity"), N_("matches, %"))
    for trace, (name, own) in zip(figure.data, bins.items(), strict=True):
        above, below = ([100 * abs(b.interval[end] - b.share) for b in own] for end in (1, 0))
        trace.error_y = {"array": above, "arrayminus": below, "thickness": 1, "width": 0}
        if (threshold := found[name].threshold) is not None:
            figure.add_vline(x=threshold, line_dash="dot", annotation_text=f"{name[:1]} {threshold:.4f}")
    figure.update_yaxes(rangemode="tozero")
    st.plotly_chart(figure, key="match-calibration")
    st.caption(_("Share of matches by similarity, with 95 % intervals. Dotted: the threshold."))
    source = judgments.name if judgments else ""
    st.download_button(
        _("Download as JSON"),
        json_bytes([one.record(name, source) for name, one in found.items()]),
        "match_threshold.json",
        on_click="ignore",
    )


@st.cache_resource(max_entries=8, show_spinner=Deferred(N_("Comparing queries with answers…")))
def _pairs(space: Space, judgments: Path | None, content: str) -> JudgedPairs:
    rows = cache.embedding(space)
    towers = None if rows is None else cache.towers(rows)
    assert towers is not None
    return JudgedPairs.of(towers, read_qrels(judgments) if judgments else None, judgments.name if judgments else "")
