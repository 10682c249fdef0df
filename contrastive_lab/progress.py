"""While a process of its own answers: what it is doing, or why it could not."""

from __future__ import annotations

from typing import Any

import streamlit as st

from contrastive_core.jobs.results import Result, task
from contrastive_core.jobs.task import share_of
from contrastive_lab import format, results

__all__ = ["answer_or_wait"]


def answer_or_wait(kind: str, values: dict[str, Any], what: str) -> Result | None:
    """The answer, or a line of progress in its place; the rest of the page goes on."""
    found = results.answer(kind, values)
    if found is None:
        _following(kind, values, what)
    return found


@st.fragment(run_every=1.0)
def _following(kind: str, values: dict[str, Any], what: str) -> None:
    try:
        doing = results.asked(kind, values)
    except ValueError as error:
        st.warning(format.plain(f"{what}: {error}"))
        if st.button("Try again", key=f"again-{task(kind, values)}"):
            results.ask_again(kind, values)
            st.rerun()
        return
    if doing is None:
        st.rerun()
    st.progress(share_of(doing), text=format.plain(f"{what}: {doing}"))
