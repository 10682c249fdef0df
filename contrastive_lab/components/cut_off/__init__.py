"""A histogram of a score between 0 and 1, and a cut-off on it that is dragged or clicked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from contrastive_lab.components.shared.mount import component_key, mount
from contrastive_lab.components.shared.transport import pack


@dataclass(frozen=True)
class CutOff:
    """The counts of equally wide bins from 0 to 1, and what is said of each cut: one cut more than
    bins, the first at 0."""

    counts: Sequence[int]
    heads: Sequence[str]  # short, by cut
    texts: Sequence[str]  # in a sentence, by cut
    cut: float
    score: str  # what is counted


def draw_cut_off(shown: CutOff, key: str, on_change: Callable[[], None]) -> None:
    """Draw it; `on_change` is called when a cut is let go, and reads `cut_reported`."""
    meta: dict[str, Any] = {
        "counts": [int(c) for c in shown.counts],
        "heads": list(shown.heads),
        "texts": list(shown.texts),
        "cut": shown.cut,
        "score": shown.score,
    }
    mount("cut_off", pack(meta), "cut", style="bench", key=key, first=None, on_change=on_change)


def cut_reported(key: str) -> float | None:
    """The cut that the browser reported last; None: none yet."""
    import streamlit as st

    value = (st.session_state.get(component_key(key)) or {}).get("cut")
    return None if value is None else float(value)
