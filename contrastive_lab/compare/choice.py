"""What Compare compares: runs with weights, and vectors that were loaded on Explore."""

from __future__ import annotations

import streamlit as st

from contrastive_core.embeddings import kept_vectors, ref
from contrastive_core.embeddings.ref import EmbeddingRef
from contrastive_core.runs import Run
from contrastive_lab import guard, query_params, state
from contrastive_lab.recordings.place import has_rows

__all__ = ["choose", "ready", "spaces"]

MOST = 8


def ready() -> list[Run]:
    """Runs that have weights and whose settings can be read; a line for each whose cannot."""
    readable = []
    for run in state.all_runs():
        if has_rows(run):
            with guard.on_its_own(run.name):
                state.data_key(run)
                readable.append(run)
    return readable


def choose(ready: list[Run]) -> tuple[list[str], str]:
    """Names of the chosen runs and loaded vectors, and the layer; fewer than two: it says why."""
    titles = {run.name: run.name for run in ready}
    titles |= {
        kept_vectors.PREFIX + key: str(about["name"])
        for key, about in kept_vectors.loaded().items()
    }
    if len(titles) < 2:
        st.info("Two runs with weights, or recordings, are needed. Train another one, and compare.")
        st.page_link("pages/train.py", label="Go to Train", icon=":material/play_circle:")
        return [], "h"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = query_params.many_of(
            st.multiselect, "Runs and loaded vectors", titles, name="runs", most=MOST,
            default=_start(ready), format_func=lambda n: titles[n],
        )  # fmt: skip
        layer = query_params.one_of(st.segmented_control, "Features", ["h", "z"], name="features",
                                    help="h: backbone, z: projection", width="content")  # fmt: skip
    if len(names) < 2:
        st.info("Choose at least two.")
    return list(names), layer


def spaces(names: list[str], layer: str) -> list[EmbeddingRef]:
    """The test rows of runs, and of loaded vectors where they are marked; of recordings the newest
    of the probe set, or of a step. Raises ValueError."""
    return [ref.of_name(name, "test", layer) for name in names]


def _start(ready: list[Run]) -> list[str]:
    """The sidebar's run with another of its data set."""
    if not ready:
        return []
    chosen = state.chosen_run()
    run = chosen if chosen in ready else ready[0]
    same = [r.name for r in ready if state.data_key(r) == state.data_key(run)]
    return [run.name, *[n for n in same if n != run.name]][:2]
