"""The user's references on pages: their scores beside a run's, and the popover in which she names them."""

import streamlit as st

from contrastive_core.base.score import Scores
from contrastive_core.runs import references
from contrastive_core.runs.run import Run
from contrastive_lab import cache, state
from contrastive_lab.locale import _
from contrastive_lab.progress import scored_or_wait


def known(run: Run) -> dict[str, Scores]:
    """The scores of a run's references on its test images, by source, as far as they were taken."""
    scored = {one.name: cache.scores(one) for one in references.references_of(run)}
    return {references.PREFIX + name: record.scores.get("h", {}) for name, record in scored.items() if record}


def follow_missing(run: Run) -> None:
    """Score the first reference of a run that has no scores; its progress, or why it has none."""
    if missing := next((one for one in references.references_of(run) if cache.scores(one) is None), None):
        scored_or_wait(missing)


def manage() -> None:
    """A popover in which runs are made references."""
    with st.popover(_("References"), icon=":material/flag:"):
        choose()


def choose() -> None:
    """The choice of references, and the way to more of them."""
    st.caption(
        _(
            "These runs are shown beside every other run on the same images: on its scales, in its tables and "
            "under the lists of Samples."
        )
    )
    named = references.read_names()
    key = f"references-{cache.digest(*named)}"  # the list may change elsewhere
    able = [run.name for run in state.all_runs() if run.weights.exists()]
    options = [*dict.fromkeys([*named, *able])]
    chosen = st.multiselect(_("References"), options, named, key=key, max_selections=references.MOST)
    if chosen != named:
        references.write_names(chosen)
        st.rerun()
    st.page_link("pages/runs.py", label=_("Import an encoder on Runs"), icon=":material/download:")
