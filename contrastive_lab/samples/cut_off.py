"""How many labels are wrong: a cut-off on the score of the list, and what is expected above it."""

from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.records.sample_table import SampleTable
from contrastive_lab import cache, locale, query_params
from contrastive_lab.components.cut_off import CutOff, draw_cut_off
from contrastive_lab.components.shared.mount import reported_state
from contrastive_lab.locale import _
from contrastive_lab.samples.current_sample import go_to

START = 0.5  # more likely wrong than right
CUTS = np.linspace(0, 1, 51)


def above(table: SampleTable, rows: np.ndarray, under: Any, so_far: bool) -> np.ndarray:
    """The rows of the list above the cut-off; all where none is above it, or all are asked for. Args: under: the
    container, below the bench, for what is said of the whole set. so_far: a part of the images is not scored yet."""
    score = table.score("mislabeled")
    known = score[np.isfinite(score)]
    key = f"cut-off-{cache.digest(table.loss, len(known), float(known.sum()))}"
    cut = float(query_params.kept_number("cut", START, 0.0, 1.0))  # of the address, or let go last

    def let_go() -> None:
        if (value := reported_state(key, "cut")) is not None:
            query_params.keep(cut=min(1.0, max(0.0, float(value))))
            go_to(None)

    nearest = float(CUTS[np.abs(CUTS - cut).argmin()])
    counted = _("probability that the label is wrong; counts on a logarithmic scale")
    draw_cut_off(CutOff(*_said_of_cuts(key, locale.language(), so_far, known), nearest, counted), key, let_go)
    query_params.keep(cut=cut)
    line = under.container(horizontal=True, vertical_alignment="center")
    line.caption(how_many(table, so_far))
    label = _("Show the rest too")
    every = query_params.switch(line.toggle, label, name="every", on_change=lambda: go_to(None), width="content")
    over = rows[score[rows] > cut]
    if not every and not len(over):
        st.info(_("No label scores above the cut-off: here are all, the likeliest first."))
    return rows if every or not len(over) else over


@st.cache_resource(max_entries=8, show_spinner=False)
def _said_of_cuts(key: str, language: str, so_far: bool, _score: np.ndarray) -> tuple[list[int], list[str], list[str]]:
    """The histogram, and what is said at each cut-off: of a million scores only once."""
    heads = [suspects(_score, c, so_far) for c in CUTS]
    return counts(_score), heads, [expected(_score, c) for c in CUTS]


def counts(score: np.ndarray) -> list[int]:
    """How many scores lie in each bin; one that is at a cut lies below it."""
    places = np.clip(np.ceil(score * (len(CUTS) - 1) - 1e-9).astype(int) - 1, 0, len(CUTS) - 2)
    return np.bincount(places, minlength=len(CUTS) - 1).tolist()  # type: ignore[no-any-return]


def suspects(score: np.ndarray, cut: float, so_far: bool = False) -> str:
    """The number of suspects in a few words."""
    count = int((score > cut).sum())
    text = _("1 suspect above {cut}") if count == 1 else _("{count} suspects above {cut}")
    text = _("So far {count} above {cut}") if so_far else text
    return text.format(count=f"{count:,}", cut=f"{cut:.2f}")


def expected(score: np.ndarray, cut: float) -> str:
    """How many of the labels above the cut-off are wrong, and how many more below it."""
    p = score[score > cut]
    if not len(p):
        return _("No label scores above {cut}.").format(cut=f"{cut:.2f}")
    text = _("About {wrong} of these {listed} labels look wrong to this encoder, and {more} more below the cut-off.")
    return text.format(wrong=f"{p.sum():,.0f}", listed=f"{len(p):,}", more=f"{score.sum() - p.sum():,.0f}")


def how_many(table: SampleTable, so_far: bool) -> str:
    """The least number of wrong labels that the encoder can see; only of what is scored so far, if it is. No interval:
    noise and ambiguous classes look alike to a model, so only an audit can give one (samples/label_audit.py)."""
    low, total = round(table.facts.get("wrong_low", 0)), f"{len(table):,}"
    if so_far:
        wrong = f"{round(table.facts.get('wrong', 0)):,}"
        return _("About {wrong} of the {total} labels scored so far look wrong.").format(wrong=wrong, total=total)
    if not low:
        text = _("This encoder sees no clear sign of wrong labels among {total}. There may be some.")
    else:
        text = _("This encoder can see at least about {wrong} wrong labels among {total}. There may be more.")
    return text.format(wrong=f"{low:,}", total=total)
