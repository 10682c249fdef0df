"""A warning on Compare: test labels that are likely wrong, undecided, and enough to matter."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import streamlit as st

from contrastive_core.engine.run_tools import sample_annotations
from contrastive_core.records.comparison import Comparison
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.sample_request import SampleRequest, request_of
from contrastive_lab import cache
from contrastive_lab.locale import _
from contrastive_lab.samples.cut_off import START


def warn(spaces: list[EmbeddingRef], comparison: Comparison) -> None:
    """Say so where undecided suspects among the test labels could change the order of runs; nothing
    where no run's test samples were looked at."""
    request = _looked_at(spaces)
    if request is None or comparison.right is None:
        return
    doubtful = np.isin(np.array(comparison.ids), list(undecided(request)))
    count = int(doubtful.sum())
    if not any(order_may_change(right, doubtful) for right in comparison.correct.values()):
        return
    labels = _("1 test label is") if count == 1 else _("{count} test labels are").format(count=f"{count:,}")
    st.warning(
        _("{labels} likely wrong and undecided: enough to change the order of these runs.").format(labels=labels),
        icon=":material/label:",
    )
    st.page_link(
        "pages/samples.py",
        label=_("Decide on them"),
        icon=":material/image_search:",
        query_params={"run": request.name, "split": "test", "list": "mislabeled"},
    )


def undecided(request: SampleRequest) -> set[str]:
    """Ids whose label is more likely wrong than right, and that nobody decided on."""
    table = cache.sample_table(request, str(request.path()))
    over = table.score("mislabeled") > START
    return set(table.columns["id"][over].tolist()) - set(sample_annotations.marks(request.marked))


def order_may_change(right: np.ndarray, doubtful: np.ndarray) -> bool:
    """Whether other labels of some samples (n) bool could undo a run's lead over another, from who
    is right (runs, n).

    Where the leader alone is right the lead can fall by two, where both are wrong by one; where
    both are right they said the same, and are wrong together.
    """
    is_right = np.asarray(right) > 0.5
    for a, b in permutations(is_right, 2):
        lead = int(a.sum()) - int(b.sum())
        fall = 2 * int((a & ~b)[doubtful].sum()) + int((~a & ~b)[doubtful].sum())
        if lead > 0 and fall >= lead:
            return True
    return False


def _looked_at(spaces: list[EmbeddingRef]) -> SampleRequest | None:
    """The table of test samples of the first run that has one."""
    for run in filter(None, (space.run for space in spaces)):
        request = request_of(run.name, "test", str(run.config.get("loss")))
        if run.weights.exists() and request.path().exists():
            return request
    return None
