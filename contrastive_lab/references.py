"""The user's references on pages: their scores beside a run's, and the popover to choose them."""

import streamlit as st

from contrastive_core.base.score import Scores
from contrastive_core.runs import references
from contrastive_core.runs.run import Run
from contrastive_lab import cache, state
from contrastive_lab.locale import _
from contrastive_lab.progress import scored_or_wait


def known(run: Run) -> dict[str, Scores]:
    """Return the computed scores of a run's references on its test images, by source."""
    scored = {one.name: cache.scores(one) for one in references.references_of(run)}
    return {references.PREFIX + name: record.scores.get("h", {}) for name, record in scored.items() if record}


def follow_missing(run: Run) -> None:
    """Score the first unscored reference of a run; draw the progress or the failure."""
    if missing := next((one for one in references.references_of(run) if cache.scores(one) is None), None):
        scored_or_wait(missing)


def manage() -> None:
    """Draw the popover to choose references."""
    with st.popover(_("References"), icon=":material/flag:"):
        choose()


def choose() -> None:
    """Draw the choice of references, and links to further ones."""
    st.caption(
        _(
            "These runs are shown beside every other run on the same data set: on its scales, in its tables "
            "and under the lists of Samples."
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
